throw new RangeError('at import');
