"""Peers: what users could call instead of ours, beyond torch at matched precision. `perf compare --peers` compares them, too.

A file each, which says what the peer needs, what it refuses and how it is called. docs/measuring.md has the rules of the
comparison. A peer is only in this list if its calls are those of its documentation or sources.
"""

from . import cublaslt, cudnn_frontend, flag_gems, quack, torch_compile, torch_eager, torchao

PEERS = {
    module.PEER.name: module.PEER
    for module in (torch_eager, torch_compile, cublaslt, cudnn_frontend, flag_gems, quack, torchao)
}
