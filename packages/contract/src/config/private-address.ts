/** Loopback, and what RFC 1918 and RFC 4193 set aside for private networks. */
const PRIVATE = [
  /^127(?:\.\d{1,3}){3}$/,
  /^10(?:\.\d{1,3}){3}$/,
  /^172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}$/,
  /^192\.168(?:\.\d{1,3}){2}$/,
  /^::1$/,
  /^f[cd][0-9a-f]{2}:[0-9a-f:]+$/i,
]

/**
 * True for an address that cannot be on the public internet. Fails closed: link-local and shared addresses, IPv4 written
 * as IPv6, and text that is not an address are not private.
 */
export function isPrivateAddress(address: string): boolean {
  return PRIVATE.some((range) => range.test(address))
}
