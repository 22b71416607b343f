"""The doctor finds planted faults, each in an otherwise sound torch model, and no fault in sound ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embark import get_model
from embark.engine.doctor import examine
from embark.models import encoder as of_functions
from embark.models.device import mean_token, pad, to_numpy, without_gradients
from embark.models.encoder import Encoder
from embark.types import Array, Content, Item, ModelCard, Rendered, Text

torch = pytest.importorskip("torch")
CARD = ModelCard("tiny/text", "1", "own", ("text",), dim=16, instructed=True, normalized=True)


class Tiny(Encoder):
    """A small sound text model with instructions, dropout, padding and pooling."""

    card = CARD

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.table, self.drop = torch.nn.Embedding(257, 16, padding_idx=0), torch.nn.Dropout(0.2).eval()

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered((Text(f"{instruction} "), *item.parts) if instruction else item.parts)

    def prepare(self, contents: Sequence[Content], mode: str) -> list[int]:
        return [1 + byte for content in contents for byte in content.value.encode()]

    @without_gradients
    def embed(self, batch: Sequence[list[int]]) -> Array:
        ids, mask = pad(batch, 0, "right", "cpu")
        return to_numpy(torch.nn.functional.normalize(self.pool(self.drop(self.table(ids)), mask), dim=-1))

    def pool(self, states: Any, mask: Any) -> Any:
        return mean_token(states, mask)


class Dropout(Tiny):
    def __init__(self) -> None:
        super().__init__()
        self.drop.train()


class IgnoredPrompt(Tiny):
    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered(item.parts)


class Shuffled(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        order = np.argsort([len(tokens) for tokens in batch])  # sorted by length, and never sorted back
        return super().embed([batch[at] for at in order])


class NotFinite(Tiny):
    def pool(self, states: Any, mask: Any) -> Any:
        return (states * mask[..., None]).sum(1) / (mask.sum(1, keepdim=True) - 1)  # 0 / 0 for one token


class Constant(Tiny):
    def pool(self, states: Any, mask: Any) -> Any:
        return torch.ones_like(states[:, 0])


class PaddingLeak(Tiny):
    def pool(self, states: Any, mask: Any) -> Any:
        return (states + 0.1).mean(1)


class HalfTheBatch(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        return super().embed(batch[: -(-len(batch) // 2)])


class WrongDimension(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        return super().embed(batch)[:, :12]


class NotUnit(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        return 3 * super().embed(batch)


class Marked(Tiny):
    """Sound, with a prompt for each role."""

    card = ModelCard("tiny/marked", "1", "own", ("text",), dim=16, normalized=True)

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered((Text("query: " if role == "query" else "passage: "), *item.parts))


class DroppedPrompt(Marked):
    def prepare(self, contents: Sequence[Content], mode: str) -> list[int]:
        return super().prepare(contents[-1:], mode)


class IgnoredMode(Tiny):
    card = Marked.card

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Rendered(item.parts, role)


class QueriesTimes(Marked):
    """Spoils what begins with the query's prompt."""

    factor, prompt = np.nan, "query"

    def embed(self, batch: Sequence[list[int]]) -> Array:
        begin = [1 + byte for byte in self.prompt.encode()]
        spoilt = [tokens[: len(begin)] == begin for tokens in batch]
        return super().embed(batch) * np.where(spoilt, self.factor, 1)[:, None]


class ZeroQueries(QueriesTimes):
    factor = 0.0


class AskedTimes(QueriesTimes):
    card, prompt = CARD, "Retrieve"

    def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
        return Tiny.render(self, item, role, instruction)


class OfLengths(Tiny):
    """Sound, of lengths that count."""

    card = ModelCard("tiny/dot", "1", "own", ("text",), dim=16, instructed=True, similarity="dot")

    def embed(self, batch: Sequence[list[int]]) -> Array:
        return super().embed(batch) * self.lengths(batch)[:, None]

    def lengths(self, batch: Sequence[list[int]]) -> Array:
        return np.log2([2.0 + len(tokens) for tokens in batch])


class BatchLengths(OfLengths):
    def lengths(self, batch: Sequence[list[int]]) -> Array:
        return np.full(len(batch), len(batch), float)


class RandomLengths(OfLengths):
    chance = np.random.default_rng(0)

    def lengths(self, batch: Sequence[list[int]]) -> Array:
        return self.chance.uniform(0.5, 2, len(batch))


class ReversedLater(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        return super().embed(batch)[:: 1 if len(batch) <= 8 else -1]


class FailsLater(Tiny):
    def embed(self, batch: Sequence[list[int]]) -> Array:
        if len(batch) > 8:
            raise RuntimeError("eight at most")
        return super().embed(batch)


class TooLarge(Tiny):
    card = ModelCard("tiny/large", "1", "own", ("text",), dim=16, instructed=True, stored="float16")

    def embed(self, batch: Sequence[list[int]]) -> Array:
        return super().embed(batch) * 1e6


class CutEarly(Tiny):
    """Reads half of what its card says, as with a truncation that an exporter left in the tokeniser."""

    card = ModelCard("tiny/cut", "1", "own", ("text",), dim=16, instructed=True, normalized=True, context=2048)

    def prepare(self, contents: Sequence[Content], mode: str) -> list[int]:
        return super().prepare(contents, mode)[:1024]


class Filled(Tiny):
    """Fills every text up to one length; what is filled in is masked."""

    def prepare(self, contents: Sequence[Content], mode: str) -> list[int]:
        tokens = super().prepare(contents, mode)[:4096]
        return tokens + [0] * (4096 - len(tokens))

    @without_gradients
    def embed(self, batch: Sequence[list[int]]) -> Array:
        ids = torch.tensor(batch)
        states = self.table(ids)
        return to_numpy(torch.nn.functional.normalize(mean_token(states, (ids > 0).long()), dim=-1))


@pytest.mark.parametrize(
    ("model", "check", "words"),
    [
        (CutEarly, "text: end", "words beyond the first 512 change nothing, though the model should read 2,048 tokens"),
        (Dropout, "text: deterministic", "dropout"),
        (IgnoredPrompt, "instructions", "prompt is not applied"),
        (Shuffled, "text: order", "another order"),
        (NotFinite, "text: finite", "NaN"),
        (Constant, "text: varied", "same vector"),
        (PaddingLeak, "text: batch", "padding"),
        (HalfTheBatch, "text: shape", "8 items went in and 4 rows came out"),
        (WrongDimension, "text: shape", "12 dimensions, but the card says 16"),
        (NotUnit, "text: length", "lengths from 3 to 3"),
        (DroppedPrompt, "roles", "the role's prompt does not reach the model"),
        (IgnoredMode, "roles", "the role's prompt does not reach the model"),
        (QueriesTimes, "roles", "as a query: tiny/marked returned NaN or infinite vectors for 'a red circle"),
        (ZeroQueries, "roles", "as a query: tiny/marked returned zero vectors for 'a red circle"),
        (AskedTimes, "instructions", "with an instruction: tiny/text returned NaN or infinite vectors"),
        (BatchLengths, "text: batch", "depends on its batch of 8"),
        (RandomLengths, "text: deterministic", "sampling is on"),
        (ReversedLater, "text: order", "rows of a batch of 16 are returned in another order"),
        (FailsLater, "text: embeds", "eight at most"),
        (TooLarge, "text: finite", "beyond the range of float16 (store them as float32) for 'a red circle"),
    ],
)
def test_planted_faults_are_found_and_named(model: type[Tiny], check: str, words: str) -> None:
    wrong = [finding for finding in examine(model()) if finding.verdict == "wrong"]
    assert check in [finding.check for finding in wrong]
    assert words in next(finding.message for finding in wrong if finding.check == check)
    assert len(wrong) <= 2  # a fault may show twice (a leak also changes with the order), but is not blamed on the rest


def test_dropout_is_not_blamed_on_roles_and_instructions() -> None:
    class Uninstructed(Dropout):
        card = ModelCard("tiny/text", "1", "own", ("text",), dim=16, normalized=True)

    for model in (Dropout, Uninstructed):
        findings = examine(model())
        assert [finding.check for finding in findings if finding.verdict == "wrong"] == ["text: deterministic"]
        [note] = [finding for finding in findings if "roles" in finding.check]
        assert (note.verdict, note.message.partition(",")[0]) == ("note", "not examined")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embark/pocket", "embark/handmade", "embark/random"])
def test_models_that_ship_are_sound(name: str) -> None:
    findings = examine(get_model(name))
    assert [finding for finding in findings if finding.verdict == "wrong"] == []
    assert {finding.check.partition(":")[0] for finding in findings} >= {"text", "image", "audio", "video", "roles"}


@pytest.mark.parametrize("model", [Tiny, Marked, OfLengths])
def test_a_sound_torch_model_is_sound(model: type[Tiny]) -> None:
    findings = examine(model())
    assert [finding for finding in findings if finding.verdict == "wrong"] == []
    told = "applied" if model.card.instructed else "not read, as the card says"
    assert [finding.message for finding in findings if finding.check == "instructions"] == [told]


def test_padding_to_one_length_is_noted() -> None:
    assert [finding.check for finding in examine(Tiny()) if finding.check == "text: padding"] == []
    [note] = [finding for finding in examine(Filled()) if finding.check == "text: padding"]
    assert (note.verdict, note.message) == (
        "note", "every text is filled up to 4096 tokens: a short one takes as long as a long one"
    )  # fmt: skip


@pytest.mark.parametrize("context", [2048, 600])
def test_a_model_that_reads_what_it_states_is_sound(context: int) -> None:
    class Cut(CutEarly):
        card = replace(CutEarly.card, context=context)

        def prepare(self, contents: Sequence[Content], mode: str) -> list[int]:
            return Tiny.prepare(self, contents, mode)[:context]  # bytes: 600 are cut before the words are over

    assert [(found.verdict, found.check) for found in examine(Cut()) if found.check == "text: end"] == [
        ("ok", "text: end")
    ]


def test_lengths_that_cosines_do_not_see_are_no_fault() -> None:
    class Cosine(BatchLengths):
        card = ModelCard("tiny/cosine", "1", "own", ("text",), dim=16, instructed=True)

    assert [finding for finding in examine(Cosine()) if finding.verdict == "wrong"] == []


def test_an_undeclared_instruction_is_found() -> None:
    class Undeclared(Tiny):
        card = ModelCard("tiny/text", "1", "own", ("text",), dim=16)

    wrong = [finding for finding in examine(Undeclared()) if finding.verdict == "wrong"]
    assert [finding.check for finding in wrong] == ["instructions"]


def test_roles_that_the_key_does_not_know_are_found() -> None:
    class Secret(Tiny):
        """Remembers the role of what it rendered last: the vector differs, the key does not."""

        def render(self, item: Item, role: str, instruction: str | None) -> Rendered:
            self.role = role
            return super().render(item, role, instruction)

        def embed(self, batch: Sequence[list[int]]) -> Array:
            found = super().embed(batch)
            return found[:, ::-1] if self.role == "query" else found

    assert "roles" in [finding.check for finding in examine(Secret()) if finding.verdict == "wrong"]


def test_a_modality_that_fails_is_a_finding_and_the_others_are_still_examined() -> None:
    sound = of_functions(
        text=lambda texts: np.ones((len(texts), 4)) * [[len(t), 1, 2, 3] for t in texts], name="me/half"
    )

    class Broken(Encoder):
        card = ModelCard("me/half", "1", "own", ("image", "text"), dim=4)

        def prepare(self, contents: Sequence[Content], mode: str) -> Any:
            if contents[0].kind == "image":
                raise RuntimeError("no image tower")
            return sound.prepare(contents, mode)

        def embed(self, batch: Sequence[Any]) -> Any:
            return sound.embed(batch)

    findings = examine(Broken())
    assert next(f.message for f in findings if f.check == "image: embeds").endswith("RuntimeError: no image tower")
    assert "text: batch" in [finding.check for finding in findings if finding.verdict == "ok"]
