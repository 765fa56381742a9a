import { openapiDocument, VERSION } from '../packages/control-plane/src/api/openapi.ts'
import { pythonErrors } from './python/errors.ts'
import { type Operation, type PlacedOperation, pythonOperations } from './python/operations.ts'
import { PythonTypes, type Schema } from './python/types.ts'

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const MODULES = 'python/src/airlock_sandbox'

/** The generated modules of the Python client, from the document that the server serves and the registry of errors. */
export function generatePython(): ReadonlyMap<string, string> {
  const { paths, components } = parseDocument(JSON.stringify(openapiDocument()))
  const types = new PythonTypes()
  for (const [name, schema] of Object.entries(components.schemas)) types.declare(name, schema)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): PlacedOperation => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  return new Map([
    [`${MODULES}/types.py`, module('Types of the API, as they are on the wire.', TYPING, types.text())],
    [`${MODULES}/_operations.py`, module('Operations of the API.', CALLING, pythonOperations(operations))],
    [`${MODULES}/errors.py`, module('Errors of the API: a class per family.', RAISING, pythonErrors())],
  ])
}

function module(about: string, imports: string, text: string): string {
  const origin = 'Made by `npm run docs:generate` from packages/contract: edit there.'
  return `"""${about}\n\n${origin}\n"""\n\nfrom __future__ import annotations\n\n${imports}\n\n\n${text}\n`
}

const TYPING = `from typing import Any, Dict, List, Literal, Optional, TypedDict, Union`

const CALLING = `from typing import Any, Dict, Literal, Mapping, NamedTuple, Optional, Protocol, Union, cast

from . import types

VERSION = "${VERSION}"

QueryValue = Union[str, int, float, bool, None]`

const RAISING = `from typing import Dict, NamedTuple, Type

from ._airlock_error import AirlockError as AirlockError`

/** Trusts the shape: the document is our own. */
function parseDocument(text: string): Document {
  return JSON.parse(text) as Document
}
