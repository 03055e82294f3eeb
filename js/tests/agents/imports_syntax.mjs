import { agent } from 'dragoman';
import { one } from './syntax.mjs';

export const main = agent((turn) => turn.write(`${one}`));
