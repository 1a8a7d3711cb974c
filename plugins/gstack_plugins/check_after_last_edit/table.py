"""What counts as a test, a check or a repro: the tables of ``check_after_last_edit`` as data (contracts C2).

To teach it another tool, add its name to a table here; nothing else changes. Names are in lower case, without a folder
or ``.exe``; a key of several words is a tool and its subcommands. The commands that run others are in
:mod:`.wrappers`; :mod:`.commands` reads both. Hot: the stop hook does so, hence builtins only.
"""


def _set(text: str) -> "frozenset[str]":
    return frozenset(text.split())


def _map(text: str) -> "dict[str, frozenset[str]]":
    """One entry a line: ``key = words``."""
    rows = [line.partition(" = ") for line in text.strip().splitlines()]
    return {key.strip(): _set(words) for key, _, words in rows}


# ------------------------------------------------------------------------------------------------- tools

#: Tools that test or check whenever they run.
RUNNERS = _set("""
    pytest py.test ptw pytest-watch nose2 nosetests trial tox nox behave lettuce robot locust stestr green
    unittest doctest
    mypy dmypy pyright basedpyright pytype pyre flake8 pylint pycodestyle pydocstyle bandit vulture prospector
    py_compile
    jest vitest mocha ava tap tape jasmine uvu qunit karma nightwatch testcafe cucumber cucumber-js wtr
    codeceptjs tsd
    tsc vue-tsc svelte-check tsgo eslint eslint_d oxlint xo standard jshint jslint tslint stylelint knip
    depcheck
    start-server-and-test test-storybook htmlhint
    rspec minitest cutest rubocop standardrb reek brakeman haml-lint erblint srb steep
    phpunit pest paratest codecept behat phpspec phpstan psalm phpcs phan infection atoum kahlan
    ctest cppcheck clang-tidy cpplint iwyu golangci-lint gotestsum ginkgo staticcheck revive errcheck
    govulncheck richgo
    checkstyle detekt ktlint spotbugs pmd swiftlint hlint credo dialyzer eunit busted luacheck selene
    bats shellcheck shellspec shunit2 prove hadolint yamllint actionlint markdownlint markdownlint-cli2 jsonlint
    cfn-lint ansible-lint kubeconform kubeval kube-score tflint checkov semgrep vale codespell typos cspell
    commitlint
    hurl newman elm-test elm-review invoke-pester
""")

#: Tools and those of their subcommands that test, check or run code.
VERBS = _map("""
    npm = test t tst
    pnpm = test t
    yarn = test
    bun = test
    deno = test check lint bench run eval
    go = test vet run
    cargo = test t run r check c clippy bench nextest miri llvm-cov tarpaulin mutants
    dotnet = test run vstest
    mix = test credo dialyzer run coveralls espec sobelow
    rebar3 = eunit ct dialyzer xref proper lint check
    lein = test check eastwood kibit midje run
    stack = test runghc runhaskell
    cabal = test run check
    swift = test run
    flutter = test analyze drive
    dart = test analyze run
    rails = test spec runner
    artisan = test
    manage.py = test check
    django-admin = test check
    composer = test check lint validate
    coverage = run
    hatch = test
    poetry = check
    pip = check
    pre-commit = run
    prek = run
    lefthook = run
    buf = lint breaking
    helm = lint test
    terraform = validate test
    tofu = validate test
    packer = validate
    sam = validate
    bazel = test run coverage
    bazelisk = test run coverage
    buck2 = test run
    pants = test check lint run
    ng = test lint e2e
    next = lint
    nuxi = typecheck test
    astro = check
    expo = lint
    ember = test t
    cypress = run
    playwright = test
    wdio = run
    detox = test
    maestro = test
    react-scripts = test
    craco = test
    stryker = run
    mutmut = run
    gauge = run
    k6 = run
    artillery = run
    dbt = test
    sqlfluff = lint
    redocly = lint
    spectral = lint
    ajv = validate test
    ruff = check
    biome = check lint ci
    dprint = check
    forge = test coverage snapshot
    hardhat = test coverage run
    truffle = test
    anchor = test
    snforge = test
    scarb = test
    nim = r
    nimble = test
    crystal = spec run
    v = test run vet
    zig = test run
    zig build = test
    gleam = test check run
    dune = test runtest exec
    raco = test
    meson = test
    r CMD = check
    swift-format = lint
    scala-cli = test run
    snyk = test
""")

#: Subcommands that are followed by the name of a script or task; it counts when the name says test or check.
SCRIPTS = _map("""
    npm = run run-script rum urn
    pnpm = run run-script
    yarn = run
    bun = run
    deno = task
    composer = run run-script
    lerna = run
    mise = run r
    nx = run
""")

#: Tools that take the name of a script in the place of a subcommand.
DIRECT = _set("yarn pnpm bun composer nx moon rush poe task go-task lage mise")

#: Tools each of whose arguments may be a target; one counts when its name says test or check.
TARGETS = _set("""
    make gmake just rake mvn gradle ant sbt mill ninja scons grunt gulp jake invoke inv mage doit earthly turbo
    waf
    npm-run-all npm-run-all2 run-s run-p xcodebuild cmake vue-cli-service wp-scripts fastlane cargo-watch
    nx-affected
    nx-run-many
""")

#: Tools that only check when one of these options is there.
NEEDS_FLAG = _map("""
    prettier = --check -c --list-different -l
    black = --check --diff
    isort = --check --check-only -c --diff
    yapf = --diff -d
    autopep8 = --diff -d
    ruff format = --check --diff
    gofmt = -l -d
    goimports = -l -d
    rustfmt = --check
    cargo fmt = --check
    mix format = --check-formatted
    dotnet format = --verify-no-changes
    deno fmt = --check
    terraform fmt = -check
    dart format = --set-exit-if-changed
    zig fmt = --check
    ansible-playbook = --syntax-check
    nginx = -t
""")

#: Other names of a tool, and tools whose subcommands are tools of their own.
ALIASES = {
    "docker-compose": "docker compose",
    "podman": "docker",
    "nerdctl": "docker",
    "podman-compose": "docker compose",
    "docker container": "docker",
    "oc": "kubectl",
    "pip3": "pip",
    "uv pip": "pip",
    "mvnw": "mvn",
    "gradlew": "gradle",
    "yarnpkg": "yarn",
    "nodejs": "node",
    "cargo watch": "cargo-watch",
    "nx affected": "nx-affected",
    "nx run-many": "nx-run-many",
    "gtimeout": "timeout",
    "mamba": "conda",
    "micromamba": "conda",
}

#: Options of a tool, before its subcommand or target, whose value is the next word.
TOOL_VALUES = _map("""
    npm = --prefix -C -w --workspace --loglevel --registry --userconfig --cache
    pnpm = -C --dir --filter -F --reporter --loglevel --workspace-concurrency
    yarn = --cwd --mutex
    bun = --cwd --filter -F --env-file -c --config -r --preload
    deno = -c --config --import-map
    cargo = --manifest-path -C --color --config -Z --target-dir
    go = -C
    make = -C --directory -f --file --makefile -I -o -W
    gmake = -C --directory -f --file --makefile -I -o -W
    just = -f --justfile -d --working-directory
    rake = -f --rakefile -I -r
    mvn = -f --file -pl --projects -P -s --settings -t -T -rf -l
    gradle = -p --project-dir -b -c -I --init-script -x --exclude-task --tests -P -D --console
    ninja = -C -f -j
    cmake = --build -B -S -G -D --preset -j --parallel --config
    xcodebuild = -scheme -project -workspace -destination -configuration -sdk -derivedDataPath -testPlan -arch
    git = -C -c --git-dir --work-tree
    uv = --directory --project -p --python --cache-dir --config-file
    poetry = -C --directory -P --project
    hatch = -e --env
    docker = -H --host -c --context --config -l --log-level
    docker compose = -f --file -p --project-name --profile --env-file --project-directory --ansi --progress
    kubectl = -n --namespace --context --kubeconfig -s --server --cluster --user
    composer = -d --working-dir
    helm = -n --namespace --kube-context
    nx = --projects --configuration -c
    turbo = --filter -F --cwd
    swift = --package-path
    mise = -C --cd
""")

# ------------------------------------------------------------------------------------------------- names

#: Parts of a script's or target's name that say test or check.
CHECK_WORDS = _set("""
    test tests testing testall spec specs repro repros reproduce reproduction check checks checker checkall
    verify verifier
    verification lint linter lints linting
""")
#: What a part of a name may end in to say so, and words that only look like it.
CHECK_ENDINGS = ("test", "tests", "spec", "specs", "check", "checks", "lint", "verify")
LOOKALIKES = _set("""
    latest contest attest fastest greatest biggest smallest largest shortest lightest tightest brightest protest
    detest
    speedtest paycheck
""")
#: Further words that say so in the names of package scripts and targets.
TARGET_WORDS = _set("e2e typecheck coverage cov unit integration smoke validate validation ci qa regression bench")
#: A name that starts with one of them makes something ready; ``and`` in it says that there is more.
NOT_FIRST = _set("""
    build rebuild install uninstall clean setup prepare compile assemble create generate gen deploy publish
    release serve
    download fetch upload copy init scaffold new add remove delete bump update
""")
#: After "test" at a name's end these don't run any.
NOT_AFTER_TEST = _set("""
    clean install deps dependencies prepare setup teardown compile classes fixtures image data docs generate
""")
#: Programs whose names only look like a script's.
NOT_SCRIPTS = _set(
    "test [ [[ test-path test-connection test-netconnection test-json test-wsman /bin/test /usr/bin/test"
)
#: Endings that a script's name is read without.
SCRIPT_ENDINGS = tuple(_set(".sh .bash .zsh .py .rb .pl .js .mjs .cjs .ts .mts .ps1 .bat .cmd .exe .php .lua .r"))
#: Folders whose scripts called run or all are tests, and these names.
TEST_FOLDERS = _set("test tests spec specs e2e")
RUN_WORDS = _set("run all main runner")

# ------------------------------------------------------------------------------------------ interpreters

#: Programs that run code: a script, program text in an option, or what comes in on standard input.
INTERPRETERS = _set("""
    python pypy ipython graalpy micropython node bun deno tsx ts-node ts-node-esm esno jiti babel-node vite-node
    swc-node
    nodemon ruby jruby perl php lua luajit julia rscript elixir escript erl groovy kotlin scala java clojure clj
    bb racket
    guile sbcl ocaml runghc runhaskell raku tclsh octave dart swift crystal nim gjs qjs jshell dotnet
""")
#: Options that give them program text, or have them run or check a script.
CODE_OPTIONS = _map("""
    python = -c
    pypy = -c
    ipython = -c
    node = -e --eval -p --print --test -c --check
    tsx = -e --eval -p --print --test
    ts-node = -e --eval -p --print
    bun = -e --eval -p --print
    ruby = -e -c
    perl = -e -E -c
    php = -r -l --run --syntax-check
    lua = -e
    luajit = -e
    julia = -e --eval -E --print
    rscript = -e
    elixir = -e
    groovy = -e
    scala = -e
    clojure = -e --eval
    clj = -e --eval
    bb = -e
    racket = -e
    guile = -c
    erl = -eval
    raku = -e
    java = -jar -m --module
    sbcl = --script --eval --load
    octave = --eval
    ocaml = -e
""")
#: Options of an interpreter whose value is the next word.
INTERPRETER_VALUES = _map("""
    python = -W -X --check-hash-based-pycs
    node = -r --require --import --loader --experimental-loader -C --conditions --input-type --env-file --title
    tsx = -r --require --import --tsconfig --env-file
    ts-node = -r --require -P --project -O --compiler-options
    ruby = -I -r -C -E
    perl = -I -M -m
    php = -d -z -t -S
    lua = -l
    julia = -t --threads -J -L --load -p
    elixir = -r -pa -pz --name --sname
    java = -cp -classpath --class-path -p --module-path --add-modules --add-opens
    nodemon = -e --ext -w --watch -x --exec -d --delay -i --ignore
""")
#: Interpreters with subcommands: only an argument that looks like a file is a script.
FILES_ONLY = _set("bun deno dart swift crystal nim dotnet")
#: Those that these options turn into an editor of text, like sed.
FILTERS = _set("perl ruby")
#: Modules that ``python -m`` runs although they test nothing; the tables of tools still apply to them.
NOT_MODULES = _set("""
    pip venv virtualenv ensurepip build twine http json pipx site sysconfig pydoc webbrowser zipfile tarfile
    base64
    calendar idlelib setuptools wheel flit hatchling cookiecutter grpc_tools piptools black isort yapf autopep8
    ruff
    coverage playwright nltk spacy ipykernel jupyter notebook mkdocs sphinx uv poetry
""")
#: Scripts of installers and builders that an interpreter may be asked to run.
NOT_PROGRAMS = _set("""
    pip npm npm-cli npx npx-cli pnpm yarn webpack webpack-cli vite rollup esbuild parcel next nuxt ng gulp grunt
    prettier husky lerna turbo tailwindcss sass
""")
#: What setup.py is asked for when nothing is tested.
NOT_SETUP = _set("install build build_ext sdist bdist bdist_wheel develop egg_info clean upload register")

#: Shells: program text, a script, or a heredoc.
SHELLS = _set("sh bash zsh dash ksh mksh ash fish pwsh powershell cmd")
#: Programs that fetch a URL, and their options whose value is no URL.
FETCHERS = _set("curl wget http https xh xhs curlie iwr irm invoke-webrequest invoke-restmethod")
FETCH_VALUES = _set("""
    -o --output -d --data --data-raw --data-binary --data-urlencode -H --header -F --form -T --upload-file -u
    --user -A
    --user-agent -b --cookie -c --cookie-jar -e --referer -K --config -m --max-time --connect-timeout --retry -w
    --write-out -X --request -x --proxy --cacert --cert --key --resolve -P -O --json -Method -Headers -Body
    -OutFile
    -ContentType --tries --timeout --limit-rate --range -r
""")

# ------------------------------------------------------------------------------------------------ probes

#: Options that make a command only tell about itself or about the tests, or skip them.
PROBES = _set("""
    --help --version -version -VV --collect-only --co --dry-run --dryrun --dry --list-tests --listTests --list
    --no-run
    --init --showConfig --show-config --showconfig --print-config --env-info --just-print --recon --show-only
    --listFiles --listFilesOnly --list-suites --list-groups --clearCache --fixtures --markers --setup-plan
    --show-files
    --show-settings --list-checks --what-if -WhatIf -DskipTests -DskipTests=true -Dmaven.test.skip=true
""")
#: Further ones of single tools; a word without a dash counts as the first argument only.
OWN_PROBES = _map("""
    make = -n
    gmake = -n
    ctest = -N
    gradle = -m
    just = -n -l --summary
    task = -n -l -a
    tox = -l list config devenv
    nox = -l
    vitest = list init
    go = -list -c -n
    rake = -T -P -n
    bats = -c --count
    ansible-playbook = --list-hosts --list-tasks
    playwright = --last-failed-list
""")
#: As the last argument these ask for help; as the only one these for the version or help.
HELP = _set("-h -? /?")
ALONE = _set("help version -V")
#: ``-v`` alone is the version of these; ``-V`` alone is no probe of those.
SHORT_VERSION = _set("""
    node npm npx pnpm yarn bun tsc vue-tsc jest vitest eslint stylelint prettier ruby rspec rubocop perl php
    ts-node tsx
    cypress ava knip bats shellcheck lua luajit java elixir
""")
LONG_VERBOSE = _set("ctest")
