package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
)

const introduction = `# Benchmark results

<!-- Written by "make bench". Do not edit. -->

Both sides of a ratio ran in turn in one process. You can only rely on the ratios, because
absolute figures change with the machine and its load. A ratio is the median of the
rounds, with the smallest and the largest in parentheses. A budget is a limit that the
library aims to meet. Anything beyond it is a miss.
`

// report is Markdown with plots. It prints each part as soon as it has been measured.
type report struct {
	text  strings.Builder
	out   io.Writer // standard output and text
	plots map[string]*plot.Plot
}

func newReport(s settings) *report {
	r := &report{plots: make(map[string]*plot.Plot)}
	r.out = io.MultiWriter(os.Stdout, &r.text)
	fmt.Fprint(r.out, introduction)
	r.table([]string{"environment", ""},
		[]string{"repeat with", "`make bench`"},
		[]string{"date", time.Now().UTC().Format(time.DateOnly)},
		[]string{"commit", commit()},
		[]string{"Go", fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		[]string{"CPU", fmt.Sprintf("%d × %s", runtime.NumCPU(), processor())},
		[]string{"disk", disk(os.TempDir())},
		[]string{"rounds", fmt.Sprintf("%d of %v", s.rounds, s.turn)})
	return r
}

// commit returns the working tree's commit.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	status, _ := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
	if len(status) > 0 {
		return strings.TrimSpace(string(hash)) + ", with changes"
	}
	return strings.TrimSpace(string(hash))
}

// processor returns the CPU's name if Linux reports it.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// section starts a section with an explanation.
func (r *report) section(title, text string) {
	fmt.Fprintf(r.out, "\n## %s\n\n%s\n", title, text)
}

// table adds a table.
func (r *report) table(header []string, rows ...[]string) {
	fmt.Fprintf(r.out, "\n| %s |\n%s|\n", strings.Join(header, " | "), strings.Repeat("|---", len(header)))
	for _, row := range rows {
		fmt.Fprintf(r.out, "| %s |\n", strings.Join(row, " | "))
	}
}

// plot adds a plot and the name of its file.
func (r *report) plot(name string, p *plot.Plot) {
	r.plots[name] = p
	fmt.Fprintf(r.out, "\n![%s](%s)\n", p.Title.Text, name)
}

// write writes the report to README.md in a directory, and the plots next to it.
func (r *report) write(dir string) error {
	errs := []error{os.WriteFile(filepath.Join(dir, "README.md"), []byte(r.text.String()), 0o644)}
	for name, p := range r.plots {
		errs = append(errs, writeSVG(filepath.Join(dir, name), p))
	}
	return errors.Join(errs...)
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// spread formats the median of ratios, with the least and the greatest.
func spread(ratios []float64) string {
	return fmt.Sprintf("%.2f (%.2f..%.2f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// quotients divides measurements from the same rounds.
func quotients(dividends, divisors []float64) []float64 {
	ratios := make([]float64, len(dividends))
	for i := range ratios {
		ratios[i] = dividends[i] / divisors[i]
	}
	return ratios
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func inMilliseconds(d time.Duration) string {
	decimals := 2
	if d >= 10*time.Millisecond {
		decimals = 0
	}
	return fmt.Sprintf("%.*f", decimals, milliseconds(d))
}

func rounded(value float64) string { return fmt.Sprintf("%.0f", value) }

func precise(value float64) string { return fmt.Sprintf("%.2f", value) }

// grouped formats a number with commas between the thousands.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
