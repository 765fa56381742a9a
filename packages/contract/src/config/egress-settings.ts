import { z } from 'zod'

/** An address with its port. */
export interface ListedAddress {
  readonly address: string
  readonly port: number
}

const MAX_LISTED = 64

/** Parts of a list, from a TOML array or from one text with commas. */
function list(given: unknown): unknown {
  return typeof given === 'string'
    ? given
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean)
    : given
}

/** `10.0.0.5:443` or `[fd00::5]:443`: one address in its usual spelling, and one port. */
function parseListed(text: string): ListedAddress | undefined {
  const [, bracketed, plain, digits = ''] = /^(?:\[([0-9a-f:]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? []
  const address = bracketed ?? plain ?? ''
  const port = Number(digits)
  if (port < 1 || port > 65_535) return undefined
  const usual = URL.parse(`http://${bracketed === undefined ? address : `[${address}]`}/`)?.hostname.replaceAll(
    /[[\]]/g,
    '',
  )
  return usual === address && address !== '' ? { address, port } : undefined
}

/** Metadata of clouds is there: no sandbox may have it, whoever lists it. */
function isLinkLocal({ address }: ListedAddress): boolean {
  return address.startsWith('169.254.') || /^fe[89ab]/.test(address) || address === 'fd00:ec2::254'
}

/** DNS servers as `ip:port`. */
export const resolversText = z.preprocess(
  list,
  z.array(z.string().refine((text) => parseListed(text) !== undefined, 'must be IP:PORT')).max(8),
)

export const listedAddresses = z.preprocess(
  list,
  z
    .array(
      z.string().transform((text, context): ListedAddress => {
        const listed = parseListed(text)
        const fault = listed === undefined ? 'must be ADDRESS:PORT' : 'must not be link-local'
        if (listed === undefined || isLinkLocal(listed)) context.addIssue({ code: 'custom', message: fault })
        return listed ?? { address: '', port: 0 }
      }),
    )
    .max(MAX_LISTED),
)
