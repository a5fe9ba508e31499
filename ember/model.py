"""Ember in PyTorch: the qwen3 architecture, small.

Two ways through the same layers: `forward` over a flat stream of packed dialogues, where attention
stays inside each dialogue, and `step` with a cache for generation.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # an older PyTorch; training on a GPU needs it, everything else does not
    varlen_attn = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    vocabulary: int = 4096
    n_layers: int = 12
    dim: int = 256
    ffn_dim: int = 768
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    context: int = 1024
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-6


class Norm(nn.Module):
    def __init__(self, dim: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def _matrix(rows: int, columns: int, scale: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) * scale * columns**-0.5)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """NeoX style: dimension i turns with i + head_dim / 2. x: [..., heads, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        heads, kv_heads = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        self.shape = shape
        self.attention_norm = Norm(shape.dim, shape.norm_epsilon)
        self.query = _matrix(heads, shape.dim)
        self.key = _matrix(kv_heads, shape.dim)
        self.value = _matrix(kv_heads, shape.dim)
        self.query_norm = Norm(shape.head_dim, shape.norm_epsilon)
        self.key_norm = Norm(shape.head_dim, shape.norm_epsilon)
        self.attention_out = _matrix(shape.dim, heads, 0.2)
        self.ffn_norm = Norm(shape.dim, shape.norm_epsilon)
        self.gate = _matrix(shape.ffn_dim, shape.dim)
        self.up = _matrix(shape.ffn_dim, shape.dim)
        self.down = _matrix(shape.dim, shape.ffn_dim, 0.2)

    def queries_keys_values(
        self, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x: [..., dim] -> [..., heads, head_dim] three times, normed and rotated."""
        weights = torch.cat([self.query, self.key, self.value])
        mixed = F.linear(self.attention_norm(x), weights)
        mixed = mixed.unflatten(-1, (-1, self.shape.head_dim))
        n_heads, n_kv = self.shape.n_heads, self.shape.n_kv_heads
        query, key, value = mixed.split([n_heads, n_kv, n_kv], dim=-2)
        query = _rotate(self.query_norm(query), cos, sin).to(mixed.dtype)
        key = _rotate(self.key_norm(key), cos, sin).to(mixed.dtype)
        return query, key, value

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Output projection and feed-forward. attended: [..., heads, head_dim]."""
        x = x + F.linear(attended.flatten(-2), self.attention_out)
        gate, up = F.linear(self.ffn_norm(x), torch.cat([self.gate, self.up])).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


def _attend_packed(
    query: Tensor, key: Tensor, value: Tensor, boundaries: Tensor, longest: int
) -> Tensor:
    """[tokens, heads, head_dim]; nothing is seen across a boundary, nothing later is seen."""
    repeat = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
    if query.is_cuda:
        return varlen_attn(
            query.contiguous(),
            key,
            value,
            boundaries,
            boundaries,
            longest,
            longest,
            window_size=(-1, 0),
        )
    place = torch.arange(len(query), device=query.device)
    dialogue = torch.bucketize(place, boundaries.long(), right=True)
    mask = (dialogue[:, None] == dialogue) & (place[:, None] >= place)
    heads_first = [t.transpose(0, 1)[None] for t in (query, key, value)]
    return F.scaled_dot_product_attention(*heads_first, attn_mask=mask)[0].transpose(0, 1)


class Cache:
    """Keys and values of every layer, [batch, context, kv_heads, head_dim]."""

    def __init__(
        self, shape: Shape, batch: int, context: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        size = (shape.n_layers, batch, context, shape.n_kv_heads, shape.head_dim)
        self.keys = torch.zeros(size, device=device, dtype=dtype)
        self.values = torch.zeros(size, device=device, dtype=dtype)
        self.length = 0


class Ember(nn.Module):
    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or Shape()
        self.embedding = nn.Parameter(torch.randn(shape.vocabulary, shape.dim) * 0.02)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.n_layers))
        self.norm = Norm(shape.dim, shape.norm_epsilon)
        frequency = shape.rope_base ** (
            -torch.arange(0, shape.head_dim, 2).float() / shape.head_dim
        )
        angles = torch.arange(2 * shape.context).float()[:, None] * frequency
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def matrices(self) -> list[nn.Parameter]:
        """Every layer's matrices: what is not the embedding and not a norm."""
        return [p for p in self.layers.parameters() if p.dim() == 2]

    def forward(self, tokens: Tensor, targets: Tensor, boundaries: Tensor) -> Tensor:
        """Mean cross-entropy over the targets that are not -100. tokens, targets: [n]."""
        place = torch.arange(len(tokens), device=tokens.device)
        start = boundaries[torch.bucketize(place, boundaries.long(), right=True) - 1]
        position = place - start
        cos, sin = self.cos[position][:, None], self.sin[position][:, None]
        x = F.embedding(tokens, self.embedding)
        for layer in self.layers:
            query, key, value = layer.queries_keys_values(x, cos, sin)
            attended = _attend_packed(query, key, value, boundaries, self.shape.context)
            x = layer.finish(x, attended)
        logits = F.linear(self.norm(x), self.embedding).float()
        return F.cross_entropy(logits, targets)

    def step(self, tokens: Tensor, first: Tensor, cache: Cache) -> Tensor:
        """Logits of the last column. tokens: [batch, n]; first: [batch], where prompts begin."""
        n, past = tokens.shape[1], cache.length
        place = torch.arange(past, past + n, device=tokens.device)
        cos, sin = self.cos[place][:, None], self.sin[place][:, None]
        seen = torch.arange(past + n, device=tokens.device)
        mask = (seen <= place[:, None]) & (
            (seen >= first[:, None, None]) | (seen == place[:, None])
        )
        x = F.embedding(tokens, self.embedding)
        for at, layer in enumerate(self.layers):
            query, key, value = layer.queries_keys_values(x, cos, sin)
            cache.keys[at, :, past : past + n] = key
            cache.values[at, :, past : past + n] = value
            keys, values = cache.keys[at, :, : past + n], cache.values[at, :, : past + n]
            attended = F.scaled_dot_product_attention(
                query.transpose(1, 2),
                keys.transpose(1, 2).to(query.dtype),
                values.transpose(1, 2).to(query.dtype),
                attn_mask=mask[:, None],
                enable_gqa=True,
            )
            x = layer.finish(x, attended.transpose(1, 2))
        cache.length += n
        return F.linear(self.norm(x[:, -1]), self.embedding).float()
