package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// sourceDate is the environment variable with the time of reproducible builds, in seconds since 1970
// (https://reproducible-builds.org/specs/source-date-epoch).
const sourceDate = "SOURCE_DATE_EPOCH"

// newMan is for who packages the program.
func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands to a folder",
		Long: `Writes the manual pages of all commands, section 1, to a folder, which it creates if
it does not exist.

The pages have the date of SOURCE_DATE_EPOCH, in seconds since 1970, or else of today.

Exit status: 0 the pages were written, 2 not.`,
		Example: `  node-authorizer man man1
  man ./man1/node-authorizer-can-i.1`,
		Args:   exactly("DIR"),
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			m := manual{version: currentVersion().Version, date: time.Now()}
			if text := os.Getenv(sourceDate); text != "" {
				seconds, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return fmt.Errorf("%s %q: want seconds since 1970", sourceDate, text)
				}
				m.date = time.Unix(seconds, 0)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return m.write(newTopic(a.root("node-authorizer")), args[0])
		},
	}
}

// write writes the page of a topic, and those of the topics below it.
func (m manual) write(t *topic, folder string, parents ...*topic) error {
	page := m.page(t, parents...)
	if err := os.WriteFile(filepath.Join(folder, t.pageName()+".1"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("writing the manual pages: %w", err)
	}
	for _, c := range t.commands {
		if err := m.write(c, folder, append([]*topic{t}, parents...)...); err != nil {
			return err
		}
	}
	return nil
}
