package render

import "strings"

// Names lists the first names, and counts the others: "a, b", "a, b, c and 4 more".
func Names(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:most], ", ") + " and " + Thousands(len(all)-most) + " more"
}

// mostFiles is how many files a sentence names.
const mostFiles = 3

// Files names files in a sentence: "file a.yaml", "files a.yaml, b.yaml, c.yaml and 4 more". It stands behind a
// preposition, so that no verb has to agree with the number of files.
func Files(names []string) string {
	if len(names) == 1 {
		return "file " + names[0]
	}
	return "files " + Names(names, mostFiles)
}

// Join joins words, with another one before the last: "a, b or c".
func Join(words []string, before string) string {
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + before + " " + words[last]
}
