// Package browser tests the pages that -o html writes, in Chromium: their content and use, by
// mouse, keyboard and screen reader, and that a page asks the network for nothing.
//
// It needs Chromium on the machine (the Debian package chromium). The accessibility rules are those
// of axe-core, which is in testdata under its own license, the MPL 2.0; it is not in the program.
//
// UPDATE_SCREENSHOTS=1 writes the pictures in docs/images again.
package browser
