/* dragoman/dragoman.h - all of the library. */
#pragma once

#include <dragoman/agui.h>
#include <dragoman/base.h>
#include <dragoman/convert.h>
#include <dragoman/document.h>
#include <dragoman/json.h>
#include <dragoman/lint.h>
#include <dragoman/model.h>
