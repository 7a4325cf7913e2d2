"""Weights of models on this machine: loading by name or folder, their revision, and how to get missing ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from robot_rl.config.labelling import LocalConfig
from robot_rl.errors import ConfigError

_T = TypeVar("_T")


def loaded(config: LocalConfig, load: Callable[..., _T]) -> _T:
    """Load the configured model with a `from_pretrained` of transformers.

    Raises:
        ConfigError: if it is not on this machine, or is no model of that kind.
    """
    if not config.model:
        raise ConfigError("which model? Set local.model to its folder, or to its name on the Hugging Face hub")
    options: dict[str, Any] = {"local_files_only": not config.download}
    if config.revision:
        options["revision"] = config.revision
    try:
        return load(config.model, **options)
    except OSError as error:
        revision = f" --revision {config.revision}" if config.revision else ""
        raise ConfigError(
            f"model {config.model}: is not on this machine ({_first_line(error)}); where there is a network, run: "
            f"hf download {config.model}{revision}, or set local.download=true"
        ) from error
    except (
        ValueError,
        KeyError,
        AttributeError,
        ImportError,
    ) as error:  # by transformers for files of another kind
        raise ConfigError(
            f"model {config.model}: cannot be loaded as this kind of model: {_first_line(error)}"
        ) from error


def revision_of(model: nn.Module) -> str:
    """Return the commit of the weights, or, for a folder, a digest of them."""
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    if commit:
        return str(commit)
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().float().contiguous().numpy().tobytes())
    return f"sha256-{digest.hexdigest()[:16]}"


def dtype_of(config: LocalConfig) -> torch.dtype:
    """Return the type in which the model computes."""
    return torch.bfloat16 if config.precision == "bfloat16" else torch.float32


def name_of(config: LocalConfig) -> str:
    """Return the model's name; of a folder the last part, so that moving it does not make it another model."""
    path = Path(config.model)
    return path.resolve().name if path.is_dir() else config.model


def require_transformers(what: str) -> None:
    """Check that transformers is installed.

    Raises:
        ConfigError: if it is not.
    """
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"{what} needs transformers ({error}); run: pip install 'robot_rl[vlm]'") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
