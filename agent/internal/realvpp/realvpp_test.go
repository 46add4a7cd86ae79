package realvpp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"

	"longline.dev/agent/internal/vppsim"
)

// standIn makes this test binary act as a VPP that is started with -c startup.conf. So the tests can find,
// start, kill and clean up a VPP without an installation.
const standIn = "REALVPP_TEST_STAND_IN"

func TestMain(m *testing.M) {
	if os.Getenv(standIn) != "" {
		playVPP(os.Args[len(os.Args)-1])
	}
	os.Exit(m.Run())
}

func playVPP(config string) {
	if os.Getenv(standIn) == "crash" {
		os.Stderr.WriteString("out of memory\n")
		os.Exit(1)
	}
	if first := config + ".first"; os.Getenv(standIn) == "misjudges its clock" {
		if _, err := os.Stat(first); err != nil {
			os.WriteFile(first, nil, 0o600)
			os.Stderr.WriteString("clib_time_verify_frequency:311: Rejecting large frequency change of 325383.33%\n")
			select {}
		}
	}
	text, _ := os.ReadFile(config)
	sockets := regexp.MustCompile(`socket-name (\S+)`).FindAllSubmatch(text, -1)
	_, err := vppsim.Start(context.Background(), vppsim.Config{
		APISocket: string(sockets[0][1]), StatsSocket: string(sockets[1][1])})
	if err != nil {
		panic(err)
	}
	select {}
}

// installed creates a stand-in at prefix/bin/vpp and sets VPP_PREFIX, so that Find returns it.
func installed(t *testing.T, behaviour string) Install {
	t.Helper()
	prefix := t.TempDir()
	t.Setenv("VPP_PREFIX", prefix)
	t.Setenv(standIn, behaviour)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(prefix, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(prefix, "bin", "vpp")); err != nil {
		t.Fatal(err)
	}
	install, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(install.Binary, prefix) {
		t.Fatalf("VPP_PREFIX names it; found %s", install.Binary)
	}
	return install
}

func TestFindReturnsThePluginFolderOfEitherLayout(t *testing.T) {
	for name, folder := range map[string]string{
		"own prefix": "lib/vpp_plugins", "Debian": "lib/x86_64-linux-gnu/vpp_plugins"} {
		t.Run(name, func(t *testing.T) {
			prefix := filepath.Dir(filepath.Dir(installed(t, "run").Binary))
			plugins := filepath.Join(prefix, folder)
			if err := os.MkdirAll(plugins, 0o755); err != nil {
				t.Fatal(err)
			}
			if install, _ := Find(); install.PluginPath != plugins || install.Libraries != filepath.Dir(plugins) {
				t.Errorf("%+v", install)
			}
		})
	}
}

func TestStartupConfigUsesNoCardsAndNoDefaultPaths(t *testing.T) {
	text := startup(Install{PluginPath: "/p"}, "/f", "mine", Options{})
	for _, want := range []string{"plugin dpdk_plugin.so { disable }", "prefix mine",
		"cli-listen /f/cli.sock", "socket-name /f/api.sock", "socket-name /f/stats.sock", "path /p"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	chosen := startup(Install{}, "/f", "mine", Options{Plugins: []string{"vxlan"}, StatsSegment: "4M"})
	if !strings.Contains(chosen, "plugin default { disable }") || !strings.Contains(chosen, "plugin vxlan_plugin.so { enable }") ||
		!strings.Contains(chosen, "stats.sock size 4M") {
		t.Errorf("not vxlan alone:\n%s", chosen)
	}
}

func TestStartedVPPRepliesUntilItIsStopped(t *testing.T) {
	v, err := Start(t.Context(), installed(t, "run"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	if said, err := v.CLI("show version"); err != nil || !strings.Contains(said, "vpp v") {
		t.Errorf("show version: %q, %v", said, err)
	}
	pid := v.PID()
	v.Stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
	if _, err := os.Stat(v.folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestTheCLIWaitsForAVPPWithoutCPUTime stops the process for longer than a client of govpp waits for the
// first reply by default.
func TestTheCLIWaitsForAVPPWithoutCPUTime(t *testing.T) {
	v, err := Start(t.Context(), installed(t, "run"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	if err := syscall.Kill(v.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resumed := time.AfterFunc(socketclient.DefaultConnectTimeout+500*time.Millisecond, func() { _ = syscall.Kill(v.PID(), syscall.SIGCONT) })
	defer resumed.Stop()
	if said, err := v.CLI("show version"); err != nil || !strings.Contains(said, "vpp v") {
		t.Errorf("show version: %q, %v", said, err)
	}
}

func TestStartRestartsAVPPWithAWrongClock(t *testing.T) {
	v, err := Start(t.Context(), installed(t, "misjudges its clock"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	if said, err := v.CLI("show version"); err != nil || !strings.Contains(said, "vpp v") {
		t.Errorf("show version: %q, %v", said, err)
	}
}

func TestRestartKeepsTheSocketsOfTheVPP(t *testing.T) {
	v, err := Start(t.Context(), installed(t, "run"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	socket, pid := v.APISocket(), v.PID()
	if err := v.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.PID() == pid || v.APISocket() != socket {
		t.Errorf("pid %d, then %d; socket %s", pid, v.PID(), v.APISocket())
	}
}

func TestStartReturnsTheOutputOfAVPPThatEnds(t *testing.T) {
	_, err := Start(t.Context(), installed(t, "crash"), Options{})
	if err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("error %v", err)
	}
}

func TestFindNamesTheSearchedFoldersWithoutAVPP(t *testing.T) {
	t.Setenv("VPP_PREFIX", "/chosen")
	if got := strings.Join(Prefixes(), " "); got != "/chosen" {
		t.Errorf("searches %s although VPP_PREFIX is set", got)
	}
	t.Setenv("VPP_PREFIX", "")
	if got := strings.Join(Prefixes(), " "); got != "/opt/vpp /usr" {
		t.Errorf("searches %s", got)
	}
	if _, err := find([]string{"/nowhere", "/at/all"}); err == nil || !strings.Contains(err.Error(), "/nowhere, /at/all") {
		t.Errorf("error %v", err)
	}
}
