// The model store in Firefox, whose file system is another implementation.
import { files, suite } from './store_checks.mjs';

suite('firefox', files);
