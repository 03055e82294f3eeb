// Lets code of the user import this package as `dragoman` although it is not installed in the project: the worker comes with it.
// A copy that the project has installed is used as usual.
import * as nodeModule from 'node:module';
import { resolve as hook } from './resolve_hook.js';

let isRegistered = false;

export function registerPackage() {
    if (isRegistered) return;
    isRegistered = true;
    if (nodeModule.registerHooks) nodeModule.registerHooks({ resolve: hook }); // node 22.15: also for require()
    else if (nodeModule.register) nodeModule.register('./resolve_hook.js', import.meta.url); // node 18.19, 20.6
}
