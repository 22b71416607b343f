"""Results from and for other tools, model cards, repositories of the hub; vectors, rankings and questions in files."""

from typing import TYPE_CHECKING

from embark import public

if TYPE_CHECKING:  # the public names: loaded at first use
    from embark.exchange.card_section import card as card
    from embark.exchange.ranked_lists import rank as rank
    from embark.exchange.recording_inputs import export_inputs as export_inputs
    from embark.exchange.scores import export_mteb as export_mteb
    from embark.exchange.scores import import_results as import_results
    from embark.exchange.upload import push as push
    from embark.exchange.vector_files import export_vectors as export_vectors
    from embark.exchange.vector_files import import_vectors as import_vectors
else:
    __getattr__, __dir__ = public.names_of("exchange")
