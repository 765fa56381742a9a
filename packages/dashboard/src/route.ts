import { useEffect, useState } from 'preact/hooks'

export type Route =
  | { readonly page: 'overview' | 'sandboxes' | 'approvals' | 'evidence' | 'killswitch' }
  | { readonly page: 'sandbox'; readonly id: string }
  | { readonly page: 'record'; readonly seq: number }
  | { readonly page: 'sign-in'; readonly link: string }

/** Paths are behind `#`, so the server sees one page alone, and never a secret of a link. */
export function parseRoute(hash: string): Route {
  const [first = '', second = ''] = hash.replace(/^#\/?/, '').split('/')
  if (first === 'sign-in') return { page: 'sign-in', link: second }
  if (first === 'sandboxes' && /^sbx_\w+$/.test(second)) return { page: 'sandbox', id: second }
  if (first === 'evidence' && /^\d{1,15}$/.test(second)) return { page: 'record', seq: Number(second) }
  if (first === 'sandboxes' || first === 'approvals' || first === 'evidence' || first === 'killswitch')
    return { page: first }
  return { page: 'overview' }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(() => location.hash)
  useEffect(() => {
    const onChange = (): void => setHash(location.hash)
    addEventListener('hashchange', onChange)
    return () => removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(hash)
}
