package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// Neo4j is a running Neo4j Community.
type Neo4j struct {
	// URL is bolt://host:port; User and Password are empty without authentication.
	URL, User, Password string

	home    string
	process *process
}

const neo4jVersion = "5.26.2"

// neo4jPOM asks Maven for the database, its Bolt server and its admin tool: 241 jars, 129 MB.
const neo4jPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>memhost</groupId><artifactId>neo4j</artifactId><version>1</version>
<dependencies><dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>` + neo4jVersion + `</version></dependency></dependencies></project>
`

// neo4jMain starts the database in this JVM: no published jar has a main class that does.
const neo4jMain = `import java.nio.file.Path;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

public class RunNeo4j {
    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]).toAbsolutePath();
        var service = new DatabaseManagementServiceBuilder(home).loadPropertiesFromFile(home.resolve("conf").resolve("neo4j.conf")).build();
        Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
        Thread.currentThread().join();
    }
}
`

// neo4jFlags are what Neo4j needs from Java 17; the heap is enough for tests.
var neo4jFlags = []string{"-Xms256m", "-Xmx768m", "-XX:+UseSerialGC", "--add-opens=java.base/java.nio=ALL-UNNAMED",
	"--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED"}

// installNeo4j gives a folder with lib/*.jar and classes/.
func (e *Env) installNeo4j(ctx context.Context) (dir, java string, err error) {
	if java, err = e.tool(ctx, "java", "openjdk-17-jdk-headless"); err != nil {
		return "", "", err
	}
	dir, err = e.installed("neo4j-"+neo4jVersion, neo4jPOM+neo4jMain, func(dir string) error {
		maven, err := e.tool(ctx, "mvn", "maven")
		if err != nil {
			return err
		}
		javac, err := e.tool(ctx, "javac", "openjdk-17-jdk-headless")
		if err != nil {
			return err
		}
		e.say("fetch Neo4j %s from Maven Central into %s (once, 130 MB)", neo4jVersion, dir)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(neo4jPOM), 0o644),
			os.WriteFile(filepath.Join(dir, "RunNeo4j.java"), []byte(neo4jMain), 0o644)); err != nil {
			return err
		}
		if err := e.run(ctx, command{name: "maven", dir: dir, args: []string{maven, "-B", "dependency:copy-dependencies",
			"-DoutputDirectory=lib", "-DincludeScope=runtime"}}); err != nil {
			return err
		}
		return e.run(ctx, command{name: "javac", dir: dir, args: []string{javac, "-cp", "lib/*", "-d", "classes",
			"RunNeo4j.java"}})
	})
	return dir, java, err
}

// startNeo4j starts an empty Neo4j. With auth, user neo4j has a password.
func (e *Env) startNeo4j(ctx context.Context, auth bool) (*Neo4j, error) {
	dir, java, err := e.installNeo4j(ctx)
	if err != nil {
		return nil, err
	}
	port, err := e.servicePort(2) // a configuration names it, too
	if err != nil {
		return nil, err
	}
	n := &Neo4j{URL: "bolt://127.0.0.1:" + strconv.Itoa(port), home: filepath.Join(e.Dir, "neo4j")}
	settings := []string{
		"server.default_listen_address=127.0.0.1", "server.bolt.enabled=true", "server.bolt.listen_address=127.0.0.1:" +
			strconv.Itoa(port),
		"server.http.enabled=false", "server.https.enabled=false", "dbms.usage_report.enabled=false",
		"server.memory.pagecache.size=128m",
		"db.tx_log.rotation.retention_policy=1 files", "dbms.security.auth_enabled=" + strconv.FormatBool(auth),
	}
	conf := filepath.Join(n.home, "conf")
	if err := errors.Join(os.MkdirAll(conf, 0o755), os.WriteFile(filepath.Join(conf, "neo4j.conf"), []byte(
		strings.Join(settings, "\n")+"\n"), 0o644)); err != nil {
		return nil, err
	}
	jars := filepath.Join(dir, "lib", "*")
	if auth {
		n.User, n.Password = "neo4j", "live-test-password"
	}
	// A data folder that was used before has its password already.
	if _, err := os.Stat(filepath.Join(n.home, "data", "databases")); auth && err != nil {
		if err := e.run(ctx, command{name: "neo4j-admin", env: []string{"NEO4J_HOME=" + n.home, "NEO4J_CONF=" + conf},
			args: []string{java, "-cp", jars, "org.neo4j.cli.AdminTool", "dbms", "set-initial-password",
				n.Password}}); err != nil {
			return nil, err
		}
	}
	e.say("start Neo4j")
	args := append([]string{java}, neo4jFlags...)
	n.process, err = e.start(command{name: "neo4j", patience: 30 * time.Second,
		args: append(args, "-cp", filepath.Join(dir, "classes")+":"+jars, "RunNeo4j", n.home)})
	if err != nil {
		return nil, err
	}
	driver, err := n.Driver()
	if err != nil {
		return nil, err
	}
	defer driver.Close(context.WithoutCancel(ctx))
	return n, e.ready(ctx, n.process, 300*time.Second, driver.VerifyConnectivity)
}

// Driver opens a driver with this server's credentials.
func (n *Neo4j) Driver() (neo4j.DriverWithContext, error) {
	token := neo4j.NoAuth()
	if n.User != "" {
		token = neo4j.BasicAuth(n.User, n.Password, "")
	}
	driver, err := neo4j.NewDriverWithContext(n.URL, token)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.URL, err)
	}
	return driver, nil
}
