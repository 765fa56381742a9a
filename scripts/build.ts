// What sandboxes are started from is one file each: the guest with its drivers, and the unpacker of images. So is what we are.
import '../packages/guest/build.ts'
import '../packages/data-plane/build.ts'
import { bundlePrograms } from './bundle.ts'

await bundlePrograms()
