// What markdown-it needs of the package punycode: hosts of links in ASCII. A URL of the browser has them so.
export function toASCII(host) {
  try { return new URL(`http://${host}`).hostname; } catch { return host; }
}
export const toUnicode = (host) => host; // a host that looks like another one is shown as it is encoded
export default { toASCII, toUnicode };
