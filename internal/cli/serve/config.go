package serve

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

func NewConfig(a *command.App) *cobra.Command {
	return command.NewGroup("config", "Check the server's config file, or print a template", newConfigValidate(a), newConfigDefaults(a))
}

func newConfigValidate(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Report all errors in a config file of the server, and in the files that it names",
		Long: `Reports all errors in a config file of the server, one line for each
mistake: the file and line, the field, and what to write instead.

If there is none, it reads the files that the configuration names, as the server does:
certificates with their keys, authorities, kubeconfigs, the authorization configuration
and the file with mappings. Relative paths are relative to the current folder.
Everything is an error with which the server would not start, would not become ready, or
would be refused by its callers: a key of another certificate, a certificate that
expired or has no names. Certificates that expire within a week, and secrets that every
user of the host can read, are warnings. The command sends nothing, and prints no keys
and no tokens.

Where the server's files are not on this machine, check the fields only, with
--without-files: the files are then listed. FILE can be - for stdin.

Exit status: 0 the file is valid, maybe with warnings, 1 it is not, 2 it could not be
read.`,
		Example: `  node-authorizer config validate /etc/node-authorizer/server.yaml
  node-authorizer config validate --without-files server.yaml`,
		Args: command.Exactly("FILE"),
	}
	withoutFiles := cmd.Flags().Bool("without-files", false, "do not read the files that the configuration names")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		text, err := readConfigFile(a, args[0])
		if err != nil {
			return err
		}
		config, err := v1alpha1.Parse(text)
		var problems v1alpha1.Problems
		switch {
		case errors.As(err, &problems):
			printProblems(a, command.ConfigProblems(args[0], problems))
			a.Status = command.StatusDenied
		case err != nil:
			return err
		case *withoutFiles:
			printFound(a, args[0], text, server.CheckExpressions(config), "valid"+unreadFiles(config))
		default:
			printFound(a, args[0], text, server.CheckFiles(config, time.Now()), "valid, and so are the files that it names")
		}
		return nil
	}
	return cmd
}

func printProblems(a *command.App, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(a.Out, render.Printable(line))
	}
}

// unreadFiles names the files in a configuration, for a validation that does not read them.
func unreadFiles(config *v1alpha1.ServerConfiguration) string {
	var files []string
	var collect func(reflect.Value, string)
	collect = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				collect(v.Elem(), name)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					collect(v.Field(i), v.Type().Field(i).Name)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				collect(v.Index(i), name)
			}
		case reflect.String:
			if v.String() != "" && (strings.HasSuffix(name, "File") || strings.HasSuffix(name, "Files") || name == "Kubeconfig") {
				files = append(files, v.String())
			}
		}
	}
	collect(reflect.ValueOf(config), "")
	if len(files) == 0 {
		return ""
	}
	slices.Sort(files)
	return "; not read: " + strings.Join(slices.Compact(files), ", ")
}

func newConfigDefaults(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "defaults",
		Short: "Print a config file of the server with the defaults and an explanation of each field",
		Example: `  node-authorizer config defaults > server.yaml
  # fill in the certificates, then
  node-authorizer config validate server.yaml`,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.Out, v1alpha1.Document())
			return err
		},
	}
}

func readConfigFile(a *command.App, path string) (text []byte, err error) {
	file, _, err := a.Open(path)
	if err == nil {
		defer file.Close()
		text, err = io.ReadAll(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the config file: %w; node-authorizer config defaults prints a template", err)
	}
	return text, nil
}

// printFound prints what is wrong with a configuration whose fields are valid, and sets the exit status; valid if nothing is.
func printFound(a *command.App, path string, text []byte, found []server.FileProblem, valid string) {
	var problems v1alpha1.Problems
	warnings, wrong := 0, false
	for _, p := range found {
		switch {
		case p.Warning:
			warnings++
			p.Message = "warning: " + p.Message
		case p.Missing:
			wrong = true
			p.Message += "; where the server's files are not on this machine, use --without-files"
		default:
			wrong = true
		}
		problems = append(problems, p.Problem)
	}
	printProblems(a, command.ConfigProblems(path, v1alpha1.Locate(text, problems)))
	switch {
	case wrong:
		a.Status = command.StatusDenied
	case warnings > 0:
		printProblems(a, []string{fmt.Sprintf("%s: valid, with warnings: %d", path, warnings)})
	default:
		printProblems(a, []string{path + ": " + valid})
	}
}
