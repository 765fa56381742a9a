import { AirlockError, modelRouteOf, type Reservation, type UpstreamKind } from '@airlock/contract'
import { type Member, TopLevel } from './top-level.ts'

/**
 * The body of one request, read as it arrives and compared with its reservation. It goes out byte by byte as it came in, with
 * our members in front. A name that is there twice, or is not in the list of the route, was refused: no reader upstream
 * can see another value than we did.
 */
export class OutgoingBody {
  readonly #top = new TopLevel()
  readonly #chunks: Buffer[] = []

  push(chunk: Buffer): void {
    this.#top.push(chunk)
    this.#chunks.push(chunk)
  }

  /** Throws `reservation_rejected` when the body asks for more than was reserved, or for something else. */
  end(reservation: Reservation, kind: UpstreamKind): Buffer {
    compare(this.#top.end(), reservation)
    const ours = JSON.stringify(membersOf(reservation, kind)).slice(1, -1)
    const [first, ...rest] = this.#chunks
    if (first === undefined || ours === '') return Buffer.concat(this.#chunks)
    // A comma, for the model is a member of it.
    return Buffer.concat([Buffer.from(`{${ours},`), first.subarray(1), ...rest])
  }
}

function compare(members: ReadonlyMap<string, Member>, { route, model, maxOutputTokens }: Reservation): void {
  const { fields, outputFields, countField } = modelRouteOf(route)
  for (const name of members.keys())
    if (!fields.has(name)) throw new AirlockError('invalid_request', `${name} must not be in a body of ${route}.`)
  if (scalarOf(members.get('model')) !== model) throw differs('the model')
  const count = countField === undefined ? 1 : (countOf(members.get(countField)) ?? 1)
  const asked = outputFields.filter((name) => members.has(name)).map((name) => countOf(members.get(name)))
  if (outputFields.length > 0 && asked.length === 0) throw differs(`a bound of its output, ${outputFields[0]},`)
  for (const tokens of asked)
    if (tokens === undefined || tokens * count > maxOutputTokens) throw differs('how many tokens may be written')
}

function scalarOf(member: Member | undefined): unknown {
  return typeof member === 'object' ? member.scalar : undefined
}

/** A bound that is not a number of things bounds nothing. */
function countOf(member: Member | undefined): number | undefined {
  if (member === undefined) return undefined
  const value = scalarOf(member)
  if (!Number.isSafeInteger(value) || Number(value) < 1) throw differs('how many tokens may be written')
  return Number(value)
}

/** Members of ours: the payer, and that nothing is kept under the account that all tenants share. */
function membersOf({ route, account }: Reservation, kind: UpstreamKind): Readonly<Record<string, unknown>> {
  const payer = kind === 'litellm' && route !== 'count_tokens' ? payerOf(route, account) : {}
  const isStored = route === 'responses' || (route === 'chat' && kind === 'openai')
  return isStored ? { store: false, ...payer } : payer
}

/** LiteLLM takes the end user of a request from here. */
function payerOf(route: Reservation['route'], account: string): Readonly<Record<string, unknown>> {
  return route === 'messages' ? { metadata: { user_id: account } } : { user: account }
}

function differs(what: string): AirlockError {
  return new AirlockError('reservation_rejected', `The body does not say ${what} as it was reserved.`)
}
