import type { Context } from '../app/context.ts'
import type { Activity } from '../sandboxes/activity.ts'
import { ArtifactKeeper } from './artifact-keeper.ts'
import { Artifacts } from './artifacts.ts'

/** What callers ask for, and what keeps rows and bytes together. */
export function createArtifacts(context: Context, activity: Activity) {
  const artifactKeeper = new ArtifactKeeper(context)
  return { artifactKeeper, artifacts: new Artifacts(context, { activity, keeper: artifactKeeper }) }
}
