// Command release builds the files of a release of node-authorizer, and pushes its image and chart
// to a registry.
//
//	release build -version v0.1.0 -revision COMMIT -time SECONDS -source DIR -out DIR
//	release push -out DIR
//
// Two builds of the same source with the same flags and the same Go version give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	if len(args) == 0 {
		return errors.New("a command is missing: build or push")
	}
	switch command, flags := args[0], args[1:]; command {
	case "build":
		r, err := parseBuild(flags, log)
		if err != nil {
			return err
		}
		return r.build(ctx)
	case "push":
		p, err := parsePush(flags, log)
		if err != nil {
			return err
		}
		return p.push(ctx)
	default:
		return fmt.Errorf("unknown command %q: want build or push", command)
	}
}

func parseBuild(args []string, log io.Writer) (*release, error) {
	r := &release{log: log}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&r.version, "version", "", "version, such as v0.1.0")
	flags.StringVar(&r.revision, "revision", "", "commit")
	seconds := flags.Int64("time", 0, "time of the commit, in seconds since 1970; the time of all files")
	flags.StringVar(&r.source, "source", ".", "folder of the repository")
	flags.StringVar(&r.out, "out", "dist", "folder for the files, empty or missing")
	flags.StringVar(&r.registry, "registry", defaultRegistry, "where to publish the image and the chart")
	platforms := flags.String("platforms", strings.Join(allPlatforms, ","), "platforms, separated by commas")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	r.time = time.Unix(*seconds, 0).UTC()
	for _, text := range strings.Split(*platforms, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		r.platforms = append(r.platforms, p)
	}
	return r, r.check()
}

func parsePush(args []string, log io.Writer) (*push, error) {
	p := &push{log: log}
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&p.out, "out", "dist", "folder of the files that build has made")
	flags.StringVar(&p.registry, "registry", defaultRegistry, "where the image and the chart go")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return p, nil
}
