export const one = 1;
const two = ;
