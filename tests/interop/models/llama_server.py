"""A llama.cpp server with a generated model: two layers of random weights, a vocabulary of bytes and letters. It prints its
address, and listens until its input ends.

usage: .venv-models/bin/python llama_server.py FOLDER
"""
import os
import string
import sys

import gguf
import numpy as np
import xllamacpp

LAYERS, WIDTH, HEADS, HIDDEN, CONTEXT = 2, 64, 4, 128, 2048
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{i:02X}>" for i in range(256)]
LETTERS = ["\u2581", *string.ascii_letters, *string.digits, ".", ",", "?", "!"]  # the first one is a space


def tokenizer(w):
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(LETTERS)
    w.add_tokenizer_model("llama")
    w.add_token_list(SPECIAL + BYTES + LETTERS)
    w.add_token_scores([0.0] * len(kinds))
    w.add_token_types(kinds)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_chat_template("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: ")


def generate(path):
    w, random = gguf.GGUFWriter(path, "llama"), np.random.default_rng(13)
    n = len(SPECIAL) + len(BYTES) + len(LETTERS)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(HIDDEN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(HEADS)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(WIDTH // HEADS)
    w.add_vocab_size(n)
    tokenizer(w)

    def add(name, *shape):
        w.add_tensor(name + ".weight", random.standard_normal(shape, dtype=np.float32) * 0.3)

    add("token_embd", n, WIDTH)
    out = random.standard_normal((n, WIDTH), dtype=np.float32)
    out[:len(SPECIAL) + len(BYTES)] = 0  # letters only: the text is printable and does not end by itself
    w.add_tensor("output.weight", out)
    w.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            w.add_tensor(f"blk.{i}.{norm}.weight", np.ones(WIDTH, dtype=np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{i}.{name}", WIDTH, WIDTH)
        add(f"blk.{i}.ffn_gate", HIDDEN, WIDTH)
        add(f"blk.{i}.ffn_up", HIDDEN, WIDTH)
        add(f"blk.{i}.ffn_down", WIDTH, HIDDEN)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    path = os.path.join(sys.argv[1], "random.gguf")
    generate(path)
    p = xllamacpp.CommonParams()
    p.model.path, p.model_alias = path, {"random"}
    p.hostnames, p.port = ["127.0.0.1"], 0
    p.n_ctx, p.n_parallel, p.warmup, p.cpuparams.n_threads = CONTEXT, 2, False, 1
    p.use_jinja = True
    server = xllamacpp.Server(p)
    print("listening on " + server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
