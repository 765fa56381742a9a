export interface ArtifactTable {
  id: string
  tenant: string
  agent: string
  node: string
  /** `writing` until its bytes are whole on the disk of its node, then `ready`. */
  state: string
  name: string
  /** While it is written: what is set aside of the quota for it. */
  size: number
  sha256: string | null
  mediaType: string
  sandbox: string | null
  command: string | null
  step: string | null
  job: string | null
  attempt: number | null
  provenance: string | null
  createdBy: string
  createdAt: number
  expiresAt: number
}
