package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine describes the machine of the measurement.
func machine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s; %s; Kubernetes %s; GOMAXPROCS=%d, GOGC at its default.",
		processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), kubernetesVersion(), runtime.GOMAXPROCS(0))
}

// processor is the model that the kernel names.
func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "processor of unknown model"
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return "processor of unknown model"
}

func kubernetesVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "of unknown version"
}
