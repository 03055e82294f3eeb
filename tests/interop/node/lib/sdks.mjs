// The SDKs for suites in other folders: what a module imports is looked for beside it, and setup puts them here.
export * as sdk1 from 'a2a-js-1';
export * as client1 from 'a2a-js-1/client';
export * as client03 from 'a2a-js-0.3/client';
