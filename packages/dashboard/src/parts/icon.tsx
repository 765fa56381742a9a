const PATHS = {
  brand: 'M8 1.5 14 4v4c0 3.4-2.4 5.6-6 6.5C4.4 13.600 2 11.400 2 8V4zM8 5v3.500m0 2.200v.1',
  overview: 'M2 2.500h5v5H2zM9 2.500h5v3H9zM9 7.500h5v6H9zM2 9.500h5v4H2z',
  sandboxes: 'M8 1.800 13.800 5v6L8 14.200 2.200 11V5zM2.400 5.100 8 8.200l5.600-3.100M8 8.200v5.800',
  approvals: 'M8 1.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM5.200 8.200 7.200 10.200 11 6.200',
  evidence: 'M3.500 1.500h6l3 3v10h-9zM9.500 1.500v3h3M5.500 8h5M5.500 11h5',
  killswitch: 'M8 1.500v6M4.700 3.800a5.500 5.500 0 1 0 6.600 0',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
