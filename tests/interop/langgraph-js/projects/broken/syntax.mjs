export const graph = ;
