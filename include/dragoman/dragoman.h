/* dragoman/dragoman.h - all of the library. */
#pragma once

#include <dragoman/base.h>
#include <dragoman/convert.h>
#include <dragoman/lint.h>
#include <dragoman/model.h>
