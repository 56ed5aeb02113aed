package repotest_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// heldBy names the test that runs a command, or does the same, for the commands that aren't
// checked here against the code. A command is held by the first row it starts with.
var heldBy = []struct{ page, command, test string }{
	{"README.md", "curl ", "examples/quickstart.TestReadme"},
	{"auth/doc.go", "umask ", "auth.TestOneLinerOfTheDocumentation"},
	{"auth/doc.go", "printf ", "auth.TestOneLinerOfTheDocumentation"},
	{"", "go mod tidy", "internal/repotest.TestWaysToConsume"},
	{"doc.go", "go mod vendor", "internal/repotest.TestWaysToConsume"},
	{"doc.go", "go work init . ../go-webhookcfg", "internal/repotest.TestWaysToConsume"},
	{"examples/mounts/README.md", "promtool test rules", "internal/integration/alerts.TestRules"},
	{"examples/service/README.md", "pkill -9 -x service", "internal/integration/service.TestKill"},
	{"examples/service/README.md", "python3 ", "internal/integration/service.TestReadme"},
	{"examples/service/README.md", "openssl ", "internal/integration/service.TestReadme"},
	{"examples/service/README.md", "curl ", "internal/integration/service.TestReadme"},
	{"webhookcfg/deliver/doc.go", "npm install standardwebhooks", "internal/integration/contract.TestSignatures"},
	{"webhookcfg/deliver/doc.go", "pip install standardwebhooks", "internal/integration/contract.TestSignatures"},
}

// programs are the commands that the examples build.
var programs = map[string]string{
	"admin": "examples/admin", "credential": "examples/credential", "mountcheck": "examples/mountcheck",
}

// TestCommands: every command of a page or of the overview of a package works. It's checked
// here against what it calls: a target, a package, a test, the flags of a program. Otherwise
// heldBy names the test that holds it. To see the list, run it with -v.
func TestCommands(t *testing.T) {
	c := checker{t: t, targets: makeTargets(t), held: make([]bool, len(heldBy))}
	_, c.all = sources(t)
	for _, page := range pages(t) {
		text := read(t, page)
		for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
			c.check(page, moduleOf(path.Dir(page)), shell(block[1], block[2]), true)
		}
		for _, span := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			c.check(page, moduleOf(path.Dir(page)), span[1], false)
		}
	}
	for _, src := range c.all {
		if src.file.Doc != nil && !src.isTest() {
			for _, text := range commandsOf(src.file.Doc.Text()) {
				c.check(src.path(), src.module, text, false)
			}
		}
	}
	for i, row := range heldBy {
		if !c.held[i] {
			t.Errorf("no page has the command %q of heldBy any more", row.command)
		}
		if dir, test, _ := strings.Cut(row.test, "."); !slices.Contains(c.tests(dir), test) {
			t.Errorf("heldBy names the test %s, which doesn't exist", row.test)
		}
	}
	if c.found < 100 {
		t.Errorf("found only %d commands", c.found)
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```$")
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	// mention matches a command in the text of a package's overview.
	mention = regexp.MustCompile(`"go [^"]+"|\bgo (?:mod|work) [a-z]+|\bgo test(?: -\w+(?: '[^']+')?)*|\b(?:npm|pip) install \w+`)
)

// shell returns the commands of a block, without the output that a console shows.
func shell(kind, block string) string {
	if kind == "sh" {
		return block
	}
	var lines []string
	continued := false
	for line := range strings.Lines(block) {
		text, isCommand := strings.CutPrefix(line, "$ ")
		if isCommand || continued {
			lines = append(lines, text)
			continued = strings.HasSuffix(text, "\\\n")
		}
	}
	return strings.Join(lines, "")
}

// commandsOf returns the commands of a package's overview: lines of its blocks of code, and
// mentions in its text.
func commandsOf(overview string) (all []string) {
	var text strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(overview, "\\\n\t", "")) {
		code, isCode := strings.CutPrefix(line, "\t")
		if !isCode || strings.Contains(code, " install ") {
			text.WriteString(strings.TrimSpace(line) + " ")
			continue
		}
		command, _, _ := strings.Cut(strings.TrimSpace(code), "   ") // an explanation may follow
		all = append(all, command)
	}
	for _, found := range mention.FindAllString(text.String(), -1) {
		all = append(all, strings.Trim(found, `"`))
	}
	return all
}

// makeTargets returns the targets of the Makefile.
func makeTargets(t *testing.T) (targets []string) {
	for line := range strings.Lines(read(t, "Makefile")) {
		if list, found := strings.CutPrefix(line, ".PHONY: "); found {
			targets = strings.Fields(list)
		}
	}
	return targets
}

// checker checks the commands of the pages.
type checker struct {
	t       *testing.T
	all     []source
	targets []string
	held    []bool // of each row of heldBy
	found   int
}

// check checks the commands in a text of a page. In a block, each command must be known.
// Elsewhere, text with an unknown first word is no command.
func (c *checker) check(page, module, text string, block bool) {
	dirs := []string{path.Dir(page), module, "."}
	for _, words := range split(text) {
		for len(words) > 0 && (words[0] == "export" || assignment.MatchString(words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if words[0] == "cd" && len(words) == 2 {
			dirs = []string{path.Join(path.Dir(page), words[1]), words[1]}
			if !slices.ContainsFunc(dirs, isDir) {
				c.t.Errorf("%s: %q: no such directory", page, strings.Join(words, " "))
			}
			continue
		}
		holder, err := c.holder(page, dirs, words)
		switch {
		case err != nil:
			c.t.Errorf("%s: %q: %v", page, strings.Join(words, " "), err)
		case holder != "":
			c.found++
			if testing.Verbose() {
				c.t.Logf("%s: %.90q: %s", page, strings.Join(words, " "), holder)
			}
		case block:
			c.t.Errorf("%s: nothing tests %q: teach TestCommands to check it, or name a test in heldBy", page, strings.Join(words, " "))
		}
	}
}

var (
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
	command    = regexp.MustCompile(`^[a-z][a-z-]+$`)
	flagWord   = regexp.MustCompile(`^-[a-z][a-z-]*$`)
)

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// holder says what holds a command. It says nothing of words that are no command.
func (c *checker) holder(page string, dirs, words []string) (string, error) {
	text := strings.Join(words, " ")
	for i, row := range heldBy {
		if (row.page == "" || row.page == page) && strings.HasPrefix(text, row.command) {
			c.held[i] = true
			return row.test, nil
		}
	}
	switch name := words[0]; {
	case name == "sleep":
		return "the shell", nil
	case name == "make":
		for _, target := range words[1:] {
			if !slices.Contains(c.targets, target) {
				return "", fmt.Errorf("the Makefile has no target %s", target)
			}
		}
		return "a target of the Makefile", nil
	case name == "go" && len(words) > 1 && command.MatchString(words[1]): // no statement of Go
		return c.goCommand(dirs, words[1:])
	case programs[name] != "":
		return c.program(programs[name], words[1:])
	case strings.HasPrefix(name, ".ci/"):
		_, err := os.Stat(name)
		return "the file", err
	case flagWord.MatchString(name):
		return c.anyFlag(path.Dir(page), name[1:])
	case len(words) > 1 && path.Ext(page) == ".md" && c.isProgram(path.Dir(page)) && command.MatchString(name):
		return c.program(path.Dir(page), words)
	}
	return "", nil
}

// goCommand checks a command of go.
func (c *checker) goCommand(dirs, args []string) (string, error) {
	switch args[0] {
	case "test":
		return c.goTest(dirs, args[1:])
	case "run", "build":
		pkg := "."
		if args = args[1:]; len(args) > 0 {
			pkg, args = args[0], args[1:]
		}
		for _, dir := range dirs {
			if dir = path.Join(dir, pkg); c.isProgram(dir) {
				return c.program(dir, args)
			}
		}
		return "", fmt.Errorf("%s is no program", pkg)
	case "vet", "fix":
		return "the Makefile", nil
	}
	return "", fmt.Errorf("nothing tests it: name a test in heldBy")
}

func (c *checker) isProgram(dir string) bool {
	return slices.ContainsFunc(c.all, func(src source) bool { return src.dir == dir && src.file.Name.Name == "main" })
}

// tests returns the names of the tests in a directory, or with "/..." also below it.
func (c *checker) tests(dir string) (names []string) {
	dir, below := strings.CutSuffix(dir, "/...")
	for _, src := range c.all {
		if !src.isTest() || src.dir != dir && (!below || dir != "." && !strings.HasPrefix(src.dir, dir+"/")) {
			continue
		}
		for _, decl := range src.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// testFlags are the flags of go test that pages use.
func testFlags(run *string) *flag.FlagSet {
	flags := flag.NewFlagSet("go test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range []string{"short", "race", "v"} {
		flags.Bool(name, false, "")
	}
	flags.Int("count", 0, "")
	flags.StringVar(run, "run", "", "")
	return flags
}

// goTest checks the flags, packages and names of go test.
func (c *checker) goTest(dirs, args []string) (string, error) {
	var pattern string
	flags := testFlags(&pattern)
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	var names []string
	for _, pkg := range flags.Args() {
		before := len(names)
		for _, dir := range dirs {
			names = append(names, c.tests(path.Join(dir, pkg))...)
		}
		if len(names) == before {
			return "", fmt.Errorf("%s has no tests", pkg)
		}
	}
	if flags.NArg() == 0 {
		names = c.tests("./...") // of the reader
	}
	top, _, _ := strings.Cut(pattern, "/")
	matches, err := regexp.Compile(top)
	if err == nil && !slices.ContainsFunc(names, matches.MatchString) {
		err = fmt.Errorf("no test matches %s", pattern)
	}
	return "its packages, flags and tests", err
}

// program checks the flags of a program, and the first argument if it names a command.
func (c *checker) program(dir string, args []string) (string, error) {
	flags, words := c.flagsOf(dir)
	if err := flags.Parse(args); err != nil && !errors.Is(err, flag.ErrHelp) {
		return "", err
	}
	if first := flags.Arg(0); command.MatchString(first) && !slices.Contains(words, first) {
		return "", fmt.Errorf("%s has no command %s", dir, first)
	}
	if flags.NArg() > 1 {
		if err := flags.Parse(flags.Args()[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
			return "", err
		}
	}
	return "the flags and commands of " + dir, nil
}

// anyFlag checks a flag that a page mentions: of the program in its directory, or else of any
// example or of go test.
func (c *checker) anyFlag(dir, name string) (string, error) {
	if !c.isProgram(dir) && testFlags(new(string)).Lookup(name) != nil {
		return "go test", nil
	}
	for _, src := range c.all {
		if src.dir != dir && (c.isProgram(dir) || !src.isExample()) {
			continue
		}
		if flags, _ := c.flagsOf(src.dir); flags.Lookup(name) != nil {
			return "the flags of " + src.dir, nil
		}
	}
	return "", errors.New("no program here has this flag")
}

// flagsOf returns the flags that the source of a program defines, and its other strings, which
// include the names of its commands.
func (c *checker) flagsOf(dir string) (flags *flag.FlagSet, words []string) {
	flags = flag.NewFlagSet(dir, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	definers := []string{"flags", "flag"}
	for _, src := range c.all {
		if src.dir != dir || src.isTest() {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					words = append(words, text)
				}
			case *ast.AssignStmt: // of a function that defines a flag with the name it gets
				if name, ok := n.Lhs[0].(*ast.Ident); ok && definesFlag(n.Rhs[0]) {
					definers = append(definers, name.Name)
				}
			case *ast.CallExpr:
				define(flags, definers, n)
			}
			return true
		})
	}
	return flags, words
}

// definesFlag reports whether an expression is a function that calls flags.Func.
func definesFlag(expr ast.Expr) (found bool) {
	if f, ok := expr.(*ast.FuncLit); ok {
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			found = found || ok && sel.Sel.Name == "Func"
			return !found
		})
	}
	return found
}

// define defines the flag that a call defines, if it does.
func define(flags *flag.FlagSet, definers []string, call *ast.CallExpr) {
	var callee *ast.Ident
	method := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		callee = f
	case *ast.SelectorExpr:
		callee, _ = f.X.(*ast.Ident)
		method = f.Sel.Name
	}
	if callee == nil || !slices.Contains(definers, callee.Name) || method == "NewFlagSet" {
		return
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		lit, ok := arg.(*ast.BasicLit)
		if !ok {
			continue
		}
		name, err := strconv.Unquote(lit.Value)
		if err == nil && flags.Lookup(name) == nil {
			if strings.HasPrefix(method, "Bool") {
				flags.Bool(name, false, "")
			} else {
				flags.String(name, "", "")
			}
		}
		return
	}
}

// split splits a text of the shell into commands of words. It knows quotes, comments,
// continued lines, redirections and $(…).
func split(text string) (commands [][]string) {
	var words []string
	word, inWord, quote := "", false, rune(0)
	endWord := func() {
		if inWord {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	endCommand := func() {
		endWord()
		if i := slices.IndexFunc(words, func(word string) bool { return word == "<" || word == ">" }); i >= 0 {
			words = words[:i]
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	runes := []rune(strings.ReplaceAll(text, "\\\n", " "))
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		case r == '$' && i+1 < len(runes) && runes[i+1] == '(':
			i++
			endCommand()
		case strings.ContainsRune("\n;&|)", r):
			endCommand()
		case r == ' ' || r == '\t':
			endWord()
		default:
			word, inWord = word+string(r), true
		}
	}
	endCommand()
	return commands
}
