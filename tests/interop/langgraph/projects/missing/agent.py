"""Needs packages that are not installed."""
import package_that_is_missing
import json
from another_missing_one.chat import Model

graph = Model(package_that_is_missing, json)
