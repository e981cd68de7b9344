"""The forms that a problem keeps from one solve to the next."""

from __future__ import annotations

from hcmodel.engines.registry import AUTO, check_name
from hcmodel.expressions.model import Model
from hcmodel.reductions.forms import Forms

# Nodes of a geometric program up to which an analysis derives it term by term, with a line for each node.
READABLE = 100


class KeptForms:
    """The forms of a model for the engine that was asked for last, and how often they were compiled.

    `engine` is the one that is taken where none is named.
    """

    def __init__(self, model: Model, engine: str = AUTO, compiled_before: int = 0) -> None:
        self.engine = engine
        self._model = model
        self._forms: Forms | None = None
        self._compiled_before = compiled_before

    def of(self, engine: str = AUTO) -> Forms:
        """The forms for an engine; they are made where those at hand are for another one."""
        wanted = self.engine if check_name(engine) == AUTO else engine
        if self._forms is None or self._forms.compiler.engine != wanted:
            self._compiled_before = self.compilations
            self._forms = Forms(self._model, wanted)
        return self._forms

    def to_show(self) -> Forms:
        """The forms of an analysis, whose derivation shows models of a readable size as written."""
        collected = self._model.posynomials
        if collected is None or not collected.is_large or collected.nodes > READABLE:
            return self.of()
        return Forms(self._model, self.engine, as_written=True)

    def drop(self) -> None:
        """To be called where the forms may be half made: they are made again when asked for."""
        self._compiled_before, self._forms = self.compilations, None

    def emptied(self) -> KeptForms:
        """The same without forms, for a copy of the problem or a pickle: functions are compiled again."""
        return KeptForms(self._model, self.engine, self._compiled_before)

    @property
    def compilations(self) -> int:
        """How often functions of the model were compiled."""
        now = 0 if self._forms is None else self._forms.compiler.compilations
        return self._compiled_before + now
