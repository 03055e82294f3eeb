// Replaces the package punycode for markdown-it, which needs the hosts of links in ASCII. The browser's URL returns them in ASCII.
export function toASCII(host) {
  try { return new URL(`http://${host}`).hostname; } catch { return host; }
}
export const toUnicode = (host) => host; // a host that looks like another one is shown as it is encoded
export default { toASCII, toUnicode };
