// Package report writes results as pages for people: one HTML file each, which needs neither a
// server nor the network.
//
// A page is a shell (page/page.html) with a style sheet, scripts, and the result as JSON. The
// scripts are plain JavaScript in page/, without a build step; each page gets the scripts of its command.
// Everything from a cluster reaches the document as text, never as markup, and the page's policy
// (Content-Security-Policy) allows only the scripts and styles that are in it, by their hashes.
package report
