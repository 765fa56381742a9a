import { AirlockError, DEMO_MODEL, type ServedModel } from '@airlock/contract'

/** The models that callers may name: those of the configured upstreams, and the demo. */
export class ModelCatalog {
  readonly all: readonly ServedModel[]
  readonly #byName: ReadonlyMap<string, ServedModel>

  /** Precondition: no name or alias occurs twice, as the settings see to. */
  constructor(configured: readonly ServedModel[]) {
    this.all = [DEMO_MODEL, ...configured]
    this.#byName = new Map(this.all.flatMap((model) => [model.name, ...model.aliases].map((name) => [name, model])))
  }

  /** Throws `model_not_found`, which names the models that there are. */
  get(name: string): ServedModel {
    const found = this.#byName.get(name)
    if (found) return found
    throw new AirlockError('model_not_found', `This server has no model ${name}.`, { hint: this.#hint() })
  }

  /** Names behind names and aliases, each once, in their order here. Throws `model_not_found`. */
  namesOf(asked: readonly string[]): string[] {
    const wanted = new Set(asked.map((name) => this.get(name)))
    return this.all.filter((model) => wanted.has(model)).map(({ name }) => name)
  }

  /** Those of the names that the server still has: an operator may have taken one out. */
  served(names: readonly string[]): readonly ServedModel[] {
    return this.all.filter(({ name }) => names.includes(name))
  }

  #hint(): string {
    if (this.all.length === 1)
      return `It has ${DEMO_MODEL.name} alone. An operator configures others: docs/models.md, "Upstreams".`
    return 'List the models: airlock llm models'
  }
}
