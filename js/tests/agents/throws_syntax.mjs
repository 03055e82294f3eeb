JSON.parse('{');
