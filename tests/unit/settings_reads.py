"""Which fields of the settings' models the source reads: types followed through the syntax tree.

What is known to be a model is a parameter or variable that is annotated with one, an attribute
named `settings`, and what is reached or assigned from these. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from gpuboot.config.settings import Settings
from gpuboot.docs.settings_page import models

Field = tuple[str, str]  # a model's name and the field's
_SETTINGS = ("settings", "_settings")


def all_models() -> dict[str, type[BaseModel]]:
    """Every model of the settings by its class name."""
    found_models: dict[str, type[BaseModel]] = {}
    pending: list[type[BaseModel]] = [Settings]
    while pending:
        model = pending.pop()
        if model.__name__ not in found_models:
            found_models[model.__name__] = model
            pending += [m for info in model.model_fields.values() for m in models(info.annotation)]
    return found_models


class Reads(ast.NodeVisitor):
    """The fields that one module reads.

    `names` has the type of each variable of the function that is looked at, `attributes` those of
    `self` in its class.
    """

    def __init__(self, known_models: dict[str, type[BaseModel]], text: str) -> None:
        self.models, self.fields = known_models, set[Field]()
        self.names: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {}
        self.returns: dict[str, Any] = {}
        self.class_fields: dict[str, Any] = {}
        tree = ast.parse(text)
        self._declare(tree)
        self.visit(tree)

    def _declare(self, tree: ast.Module) -> None:
        """What the module's imports, functions and dataclasses say of types."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                aliases = {item.asname: item.name for item in node.names if item.asname}
                models_by_alias = {key: self.models.get(name) for key, name in aliases.items()}
                self.models = {**self.models, **{k: m for k, m in models_by_alias.items() if m}}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                self.returns[node.name] = self.annotated(node.returns)
            if isinstance(node, ast.ClassDef) and node.name not in self.models:
                for item in node.body:
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                        self.class_fields[item.target.id] = self.annotated(item.annotation)

    def annotated(self, node: ast.expr | None) -> Any:
        """The model that an annotation names, or what holds one."""
        if isinstance(node, ast.Name):
            return self.models.get(node.id)
        if isinstance(node, ast.BinOp):
            return self.annotated(node.left) or self.annotated(node.right)
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            model = next(filter(None, map(self.annotated, parts)), None)
            return model and types.GenericAlias(tuple, (model, ...))
        return None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self.attributes = self.attributes, {}
        own_type = self.models.get(node.name)
        for item in node.body:
            validates = isinstance(item, ast.FunctionDef) and any(
                "validator" in ast.unparse(decorator) for decorator in item.decorator_list
            )
            if not (own_type and validates):
                self.names = {"self": own_type} if own_type else {}
                self.visit(item)
        self.attributes = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before = dict(self.names)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if argument.annotation is not None:
                self.names[argument.arg] = self.annotated(argument.annotation)
        for statement in node.body:
            self.visit(statement)
        self.names = before

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.names[node.target.id] = self.annotated(node.annotation)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.names[node.target.id] = self.type_of(node.value)

    def visit_For(self, node: ast.For) -> None:
        self.bind_element(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.bind_element(node.target, node.iter)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        # what a comprehension goes over is bound before its element is looked at
        for comprehension in getattr(node, "generators", []):
            self.visit_comprehension(comprehension)
        super().generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.type_of(node)
        self.generic_visit(node)

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for part, item in zip(target.elts, value.elts, strict=False):
                self.bind(part, item)
        elif isinstance(target, ast.Name):
            self.names[target.id] = self.type_of(value)
        elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            self.attributes[target.attr] = self.type_of(value)

    def bind_element(self, target: ast.expr, iterable: ast.expr) -> None:
        """Variables of a loop: of several the last one is the value of a dict."""
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        if isinstance(parts[-1], ast.Name):
            self.names[parts[-1].id] = _element(self.type_of(iterable))

    def type_of(self, node: ast.expr) -> Any:
        """The model of an expression, or the annotation of what holds some; None for others."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, Settings if name in _SETTINGS else None)
            case ast.Attribute(value=value, attr=name):
                return self._attribute(value, name)
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values")):
                return self.type_of(value)
            case ast.Call(func=ast.Attribute(value=value, attr="get")):
                return _element(self.type_of(value))
            case ast.Call(func=ast.Name(id=name)):
                return self.returns.get(name)
            case ast.Subscript(value=value):
                return _element(self.type_of(value))
            case ast.IfExp(body=first, orelse=second):
                return self.type_of(first) or self.type_of(second)
            case ast.BoolOp(values=values):
                return next(filter(None, map(self.type_of, values)), None)
        return None

    def _attribute(self, value: ast.expr, name: str) -> Any:
        owner = self.type_of(value)
        if isinstance(owner, type) and issubclass(owner, BaseModel):
            if name in ("model_dump", "model_copy"):
                self.fields |= {(owner.__name__, field) for field in owner.model_fields}
            if name in owner.model_fields:
                self.fields.add((owner.__name__, name))
                return _bare(owner.model_fields[name].annotation)
            return None
        if name in _SETTINGS:
            return Settings
        return self.attributes.get(name) or self.class_fields.get(name)


def _bare(annotation: Any) -> Any:
    """An annotation without limits and None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return next((_bare(item) for item in get_args(annotation) if models(item)), None)
    return annotation


def _element(annotation: Any) -> Any:
    """What a collection holds: a dict its values."""
    found_models = models(annotation) if get_origin(annotation) in (tuple, dict) else []
    return found_models[0] if found_models else annotation


def fields_read(root: Path, names: Iterator[str]) -> set[Field]:
    """All that these Python files read of settings."""
    known_models = all_models()
    fields: set[Field] = set()
    for name in names:
        text = (root / name).read_text()
        if "settings" in text or "Settings" in text:
            fields |= Reads(known_models, text).fields
    return fields
