// Serves dist/ on a port of this machine: `node serve.mjs [PORT]`.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const files = { '/': ['index.html', 'text/html; charset=utf-8'], '/page.js': ['page.js', 'text/javascript; charset=utf-8'] };

createServer(async (request, response) => {
    const found = files[new URL(request.url, 'http://localhost').pathname];
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': found[1] }).end(await readFile(new URL(`dist/${found[0]}`, import.meta.url)));
}).listen(Number(process.argv[2] ?? 3000), '127.0.0.1', function () {
    console.log(`open http://127.0.0.1:${this.address().port}/`);
});
