// The model store in Firefox, whose file system is another implementation.
import { everywhere, suite } from './store_checks.mjs';

suite('firefox', Object.entries(everywhere));
