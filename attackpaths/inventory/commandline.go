package inventory

import (
	"path"
	"slices"
	"strings"
)

// shells are programs that run the script after their option -c, and wrappers programs and words of shells that run the program
// that they are given after options and variables.
var (
	shells   = []string{"sh", "ash", "bash", "dash", "ksh", "zsh"}
	wrappers = []string{
		"hyperkube", "go-runner", "tini", "dumb-init", "busybox", "env", "nice", "ionice", "nohup", "entrypoint.sh", "docker-entrypoint.sh",
		"watch-termination", "exec", "time", "if", "then", "else", "elif", "while", "until", "do", "!", "{",
	}
)

// programs lists the names of the programs that a command line runs: the first word, and what a wrapper or a shell runs.
// A value of a flag is none.
func programs(words []string) (all []string) {
	afterFlag := false
	for i, word := range words {
		isFlag := strings.HasPrefix(word, "-")
		if isFlag || strings.Contains(word, "=") {
			if i == 0 {
				return nil // the image names the program
			}
			afterFlag = isFlag && !strings.Contains(word, "=") && word != "--"
			continue
		}
		name := path.Base(word)
		all = append(all, name)
		switch {
		case slices.Contains(shells, name):
			return append(all, programsOfScript(words[i+1:])...)
		case !slices.Contains(wrappers, name) && !afterFlag: // after a flag, it may be the flag's value
			return all
		}
		afterFlag = false
	}
	return all
}

// programsOfScript lists the names of the programs that a shell runs, by its arguments.
func programsOfScript(arguments []string) (all []string) {
	hasScript := func(word string) bool {
		return strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.Contains(word, "c")
	}
	option := slices.IndexFunc(arguments, hasScript)
	if option < 0 || option+1 == len(arguments) {
		return nil
	}
	for _, words := range commands(arguments[option+1]) {
		all = append(all, programs(append([]string{"env"}, words...))...)
	}
	return all
}

// commands splits a script of a shell into its commands, and these into words without quotes.
func commands(script string) (all [][]string) {
	var words []string
	var word strings.Builder
	endWord := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	quote := rune(0)
	for _, r := range strings.ReplaceAll(script, "\\\n", " ") + "\n" {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && strings.ContainsRune("'\"", r):
			quote = r
		case quote == 0 && strings.ContainsRune(";&|(\n", r):
			endWord()
			all, words = append(all, words), nil
		case quote == 0 && strings.ContainsRune(" \t", r):
			endWord()
		default:
			word.WriteRune(r)
		}
	}
	return all
}
