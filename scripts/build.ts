// Sandboxes start from one file each: the guest with its drivers, and the unpacker of images. So do our processes.
import '../packages/guest/build.ts'
import '../packages/data-plane/build.ts'
import { bundlePage } from './bundle-page.ts'
import { bundlePrograms } from './bundle.ts'

await Promise.all([bundlePrograms(), bundlePage()])
