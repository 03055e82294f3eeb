import 'a-package-that-does-not-exist';
export const graph = null;
