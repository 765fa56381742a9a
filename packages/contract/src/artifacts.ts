/** Artifacts: bytes that leave a sandbox on purpose, and outlive it. */
export {
  artifact,
  artifactLink,
  artifactProvenance,
  artifactPatterns,
  collectArtifactsBody,
  collectedArtifacts,
  jobArtifacts,
  linkArtifactBody,
  type Artifact,
  type ArtifactLink,
  type ArtifactProvenance,
  type CollectArtifactsBody,
  type CollectedArtifacts,
  type JobArtifacts,
  type LinkArtifactBody,
} from './nouns/files/artifact.ts'
export {
  findFilesRequest,
  keepFileRequest,
  storedArtifact,
  type FindFilesRequest,
  type KeepFileRequest,
  type StoredArtifactBytes,
} from './host/data-plane-api.ts'
export { artifactId } from './nouns/scalars.ts'
