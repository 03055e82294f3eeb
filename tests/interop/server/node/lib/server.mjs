// `dragoman serve` for tests: started on a free port, ended again whatever happens.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../../../..');
const binary = resolve(root, process.env.DRAGOMAN ?? 'build/dragoman');
const sanitizer = { ASAN_OPTIONS: 'exitcode=77:detect_leaks=1', UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1' };
const patience = 60_000; // for a sanitizer build on a busy machine

export const folder = mkdtempSync(join(tmpdir(), 'dragoman-interop-'));
const live = new Set();
process.on('exit', () => {
    for (const child of live) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
});

if (!existsSync(binary)) {
    console.log(`not ok 1 - dragoman is built\n# no ${binary}: run make build, or name it in DRAGOMAN\n1..1`);
    process.exit(1);
}

export class Server {
    constructor(config, store = 'memory:') {
        this.home = mkdtempSync(join(folder, 'server-'));
        this.store = store;
        writeFileSync(join(this.home, 'dragoman.json'), JSON.stringify(config));
    }

    async start(listen = '127.0.0.1:0') {
        const args = ['serve', '--listen', listen, '--store', this.store, '-c', join(this.home, 'dragoman.json')];
        const child = spawn(binary, args, { cwd: this.home, env: { ...process.env, ...sanitizer }, stdio: ['ignore', 'pipe', 'pipe'] });
        this.child = child;
        this.log = '';
        this.ended = new Promise((done) => child.on('exit', (status, signal) => done(status ?? signal)));
        this.ended.then(() => live.delete(child));
        live.add(child);
        await new Promise((done, fail) => {
            const late = setTimeout(() => fail(new Error(`it does not listen\n${this.log}`)), patience);
            const read = (bytes) => {
                this.log += bytes;
                const found = /listening on (http:\/\/127\.0\.0\.1:(\d+))/.exec(this.log);
                if (!found) return;
                [, this.url, this.port] = found;
                clearTimeout(late);
                done();
            };
            child.stdout.on('data', read);
            child.stderr.on('data', read);
            this.ended.then((status) => fail(new Error(`it ended with ${status}\n${this.log}`)));
        });
        return this;
    }

    async kill() {
        this.child.kill('SIGKILL');
        await this.ended;
    }

    /** The same again, at the same address, on the same store. */
    restart() {
        return this.start(`127.0.0.1:${this.port}`);
    }

    /** SIGTERM; complains unless it ends with 0. */
    async stop() {
        this.child.kill('SIGTERM');
        const late = setTimeout(() => this.child.kill('SIGKILL'), patience);
        const status = await this.ended;
        clearTimeout(late);
        if (status !== 0) throw new Error(`status ${status} after SIGTERM\n${this.log.slice(-4000)}`);
    }
}
