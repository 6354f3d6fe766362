package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// flagLimit has the least and the most that a flag takes: a number, or nanoseconds.
type flagLimit struct{ least, most int64 }

var watchLimit = flagLimit{int64(time.Second), int64(24 * time.Hour)}

// flagLimits are the limits of numbers and durations, by "command flag". The flags of server for
// machines are not among them: they are fields of its configuration, which is validated.
var flagLimits = map[string]flagLimit{
	"attack-paths max-paths":      {0, 1_000_000},
	"attack-paths watch-interval": watchLimit, "doctor watch-interval": watchLimit, "reach watch-interval": watchLimit,
	"client interval":       {int64(time.Millisecond), int64(24 * time.Hour)},
	"client timeout":        {int64(time.Millisecond), int64(7 * 24 * time.Hour)},
	"quarantine for":        {int64(time.Second), int64(10 * 365 * 24 * time.Hour)},
	"quarantine timeout":    {0, int64(24 * time.Hour)},
	"kubeadm port":          {0, 65_534},
	"kubeadm timeout":       {int64(time.Second), int64(time.Hour)},
	"test-provider timeout": {int64(time.Second), int64(time.Hour)},
	"verify timeout":        {int64(time.Second), int64(time.Hour)},
	"undo timeout":          {int64(time.Second), int64(time.Hour)},
	"server verbosity":      {0, 10},
}

// Outputs are the flags with a file that is written, by "command flag" or by flag. Its folder must be here.
var Outputs = []string{"write-baseline", "partial", "snapshot output"}

// Folders are the flags that take a folder too, by "command flag" or by flag.
var Folders = []string{
	"from", "with", "to", "add", "kubernetes-dir", "pki", "check filename", "admission-policy filename", "authorization-config filename",
}

// IsIn reports whether a list has a flag, alone or with its command.
func IsIn(list []string, cmd *cobra.Command, f *pflag.Flag) bool {
	return slices.Contains(list, f.Name) || slices.Contains(list, cmd.Name()+" "+f.Name)
}

// NotHere are the flags with a file that need not be here when a command begins, by "command flag" or by
// flag, with the reason.
var NotHere = map[string]string{
	"client kubeconfig": "it is written with its folder", "kubeadm output": "it is made",
	"server tls-cert": "it is waited for", "server tls-private-key": "it is waited for", "server tls-client-ca": "it is waited for",
	"client tls-cert": "it is read to join only", "client tls-private-key": "it is read to join only",
	"client tls-client-ca": "it is read to join only", "client kubeapi-ca": "it is read to join only",
	"client identity-token-file": "it is read to join only", "client cert-dir": "it is made",
	"client key-file":         "it is read to join only",
	"client certificate-file": "it is read to join only",
	"client tpm-device":       "it is read to join only", "client tpm-event-log": "it is read to join only",
	"webhook-kubeconfig": "it is on the machine of the API server",
	"audit":              "it is a pattern of files",
}

// CheckFlagValues validates the values of all flags that were given, before a command does anything.
func CheckFlagValues(cmd *cobra.Command, _ []string) error {
	var first error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if first == nil {
			first = checkFlagValue(cmd, f)
		}
	})
	return first
}

// checkFlagValue validates each value of a flag by the name of the kind of value that it takes.
func checkFlagValue(cmd *cobra.Command, f *pflag.Flag) error {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, value := range values {
		if wrong := wrongValue(cmd, f, value); wrong != "" {
			return Usagef("--%s %q: %s", f.Name, value, wrong)
		}
	}
	return nil
}

// wrongValue says what is wrong with a value, and what the flag takes; empty if nothing is.
func wrongValue(cmd *cobra.Command, f *pflag.Flag, value string) string {
	switch FlagValue(cmd.Name(), f) {
	case ValueFile:
		return wrongFile(cmd, f, value)
	case ValueURL:
		return wrongURL(value)
	case ValueNumber, ValueDuration:
		if f.Name == "request-timeout" { // seconds or a duration, as in kubectl
			if d, err := clientcmd.ParseTimeout(value); err != nil || d < 0 {
				return "want a number of seconds, or one with a unit, such as 90s or 5m; 0 for no limit"
			}
			return ""
		}
		limit, ok := flagLimits[cmd.Name()+" "+f.Name]
		if n, err := number(f.Value.Type(), value); ok && (err != nil || n < limit.least || n > limit.most) {
			return wantNumber(cmd, f)
		}
	}
	return ""
}

func wrongFile(cmd *cobra.Command, f *pflag.Flag, path string) string {
	_, later := NotHere[f.Name]
	_, laterHere := NotHere[cmd.Name()+" "+f.Name]
	switch {
	case path == "":
		return "want the path of a file"
	case path == StdinName || later || laterHere:
		return ""
	case IsIn(Outputs, cmd, f):
		return wrongFolder(cmd, path)
	}
	file, err := os.Stat(path)
	switch {
	case err != nil:
		return reasonOf(err) + missingFileHints[f.Name]
	case file.IsDir() && !IsIn(Folders, cmd, f):
		return "it is a folder, want a file" + missingFileHints[f.Name]
	}
	return ""
}

// wrongFolder says why a file cannot be written. The folder of parts (--part) is made.
func wrongFolder(cmd *cobra.Command, path string) string {
	folder := filepath.Dir(path)
	if part := cmd.Flags().Lookup("part"); part != nil && part.Changed {
		return ""
	}
	if _, err := os.Stat(folder); err != nil {
		return "folder " + folder + ": " + reasonOf(err)
	}
	return ""
}

// WithFlag names the flag with the file that an error is about.
func WithFlag(cmd *cobra.Command, err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	named := err
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if FlagValue(cmd.Name(), f) == ValueFile && f.Value.String() == failed.Path {
			named = fmt.Errorf("--%s: %w", f.Name, err)
		}
	})
	return named
}

// missingFileHints say where the files of some flags come from.
var missingFileHints = map[string]string{
	"compare-with": "; attack-paths -o json prints one",
	"audit-report": "; node-authorizer audit -o json prints one",
	"baseline":     "; --write-baseline writes one",
	"config":       "; node-authorizer config defaults prints a template",
}

// reasonOf returns why a file cannot be used, without its path.
func reasonOf(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err.Error()
	}
	return err.Error()
}

// wrongURL accepts a host without a scheme, as kubectl does.
func wrongURL(text string) string {
	whole := text
	if !strings.Contains(text, "://") {
		whole = "https://" + text
	}
	if parsed, err := url.Parse(whole); text != "" && (err != nil || parsed.Host == "") {
		return "want a URL such as https://HOST:PORT"
	}
	return ""
}

func number(kind, text string) (int64, error) {
	if kind != "duration" {
		return strconv.ParseInt(text, 10, 64)
	}
	d, err := time.ParseDuration(text)
	return int64(d), err
}

// wantNumber says which numbers or durations a flag takes.
func wantNumber(cmd *cobra.Command, f *pflag.Flag) string {
	limit, limited := flagLimits[cmd.Name()+" "+f.Name]
	switch {
	case f.Value.Type() == "duration" && limited:
		return fmt.Sprintf("want a number with a unit, such as 90s, 30m or 48h, from %s to %s",
			hours(limit.least), hours(limit.most))
	case f.Value.Type() == "duration":
		return "want a number with a unit, such as 90s, 30m or 48h"
	case limited:
		return fmt.Sprintf("want a number from %d to %d", limit.least, limit.most)
	}
	return "want a number"
}

// hours writes a duration without minutes and seconds that are zero: "48h".
func hours(nanoseconds int64) string {
	text := time.Duration(nanoseconds).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// FlagError is the error for flags that cannot be read. It says what they take instead of how a library
// reads it, and which flags have a similar name.
func FlagError(cmd *cobra.Command, err error) error {
	if before := cmd.Flags().Args(); !Acts(cmd) && len(before) > 0 {
		return NoCommand(cmd, before) // the flags belong to the command that was meant
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, "--"+f.Name)
			}
		})
		return Usagef("%w%s", err, DidYouMean("--"+unknown.GetSpecifiedName(), known))
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return Usagef("%w", err)
	}
	f, want := invalid.GetFlag(), ""
	switch f.Value.Type() {
	case "bool":
		want = "want true or false"
	case "stringSlice":
		want = "want values separated by commas"
	case "func": // a flag of ours, with an error for people
		want = invalid.Unwrap().Error()
	default:
		want = wantNumber(cmd, f)
	}
	return Usagef("--%s %q: %s", f.Name, invalid.GetValue(), want)
}
