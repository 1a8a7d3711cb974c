"""Commands that run the command after them, as data (contracts C2).

One a line: ``name = rules | options whose value is the next word``.

Rules: a number says how many words stand before the command; ``dashes`` that it follows ``--``; ``names`` that it may
be the name of a script; ``python`` that a ``.py`` file is run; ``service`` that the word before it may say test;
``^tool`` puts a tool in front again; ``text`` that the rest is program text, ``each`` that each word is one, ``none``
that only an option holds a command. Options: ``-c:text`` has program text, ``-c:rest`` is followed by the command,
``-m:module`` by a Python module, and with ``-v:stop`` nothing is run. Hot: the stop hook reads it, hence builtins only.
"""

WRAPPERS = """
    time = 0 | -f --format -o --output
    timeout = 1 | -s --signal -k --kill-after
    env = 0 | -u --unset -C --chdir
    sudo = 0 | -u --user -g --group -h -p -C -D -r -t -T -U -l:stop -v:stop
    doas = 0 | -u -C
    nice = 0 | -n --adjustment
    ionice = 0 | -c -n -p --class
    taskset = 1
    nohup = 0
    setsid = 0
    exec = 0 | -a
    builtin = 0
    command = 0 | -v:stop -V:stop
    stdbuf = 0 | -i -o -e --input --output --error
    unbuffer = 0
    script = none | -c:text --command:text
    xvfb-run = 0 | -n -s -e -f -p -w --server-num --server-args --error-file --auth-file --xauth-protocol --wait
    caffeinate = 0 | -t -w
    chronic = 0
    strace = 0 | -e -o -p -s
    ltrace = 0 | -e -o -p -s
    valgrind = 0
    perf stat = 0 | -e -r -o
    perf record = 0 | -e -F -o
    gdb = 0 | -ex -x
    xargs = 0 | -n -I -P -L -d -a -s -E --max-args --max-procs --delimiter
    parallel = 0 | -j --jobs -N -I
    watch = text | -n --interval
    flock = 1 | -w --wait -E -c:text
    entr = 0 | -s:text
    watchexec = 0 | -e --exts -w --watch -i --ignore
    dotenv = 0 | -e -f -p
    dotenvx run = 0 | -f -e --env --env-file
    cross-env = 0
    cross-env-shell = text
    env-cmd = 0 | -f -e -r
    op run = 0 | --env-file
    doppler run = 0 | -p -c --project --config
    aws-vault exec = 1 | -d
    direnv exec = 1
    nix-shell = none | -p -A -I --run:text --command:text
    nix develop = none | -c:rest --command:rest
    nix shell = none | -c:rest --command:rest
    devbox run = 0 names | -c --config
    asdf exec = 0
    mise exec = dashes | -C --cd
    mise x = dashes | -C --cd
    rbenv exec = 0
    pyenv exec = 0
    nvm exec = 1
    volta run = 0 | --node --npm --yarn
    corepack = 0
    conda run = 0 | -n --name -p --prefix --cwd
    uv run = 0 python | --with --with-editable --with-requirements -p --python --extra --group --only-group \
        --no-group --project --directory --env-file --package --index --index-url --default-index -m:module \
        --module:module
    uvx = 0 | --with --from -p --python --index --directory
    uv tool run = 0 | --with --from -p --python --index
    poetry run = 0 names | -C --directory -P --project
    pipenv run = 0 names
    pdm run = 0 names python | -p --project -e
    pipx run = 0 | --spec --python
    hatch run = 0 names | -e --env
    rye run = 0 names python | -p --pyproject
    pixi run = 0 names | -e --environment --manifest-path
    bundle exec = 0
    npx = 0 | -p --package -c:text --call:text -w --workspace --prefix
    npm exec = 0 | -p --package -c:text --call:text -w --workspace --prefix
    npm x = 0 | -p --package -c:text --call:text -w --workspace --prefix
    bunx = 0 | -p --package
    bun x = 0 | -p --package
    pnpx = 0
    pnpm exec = 0
    pnpm dlx = 0 | --package
    pnpm recursive = 0 ^pnpm | --filter -F
    yarn exec = 0
    yarn dlx = 0 | -p --package
    yarn workspace = 1 ^yarn
    yarn workspaces foreach = 0 ^yarn | --include --exclude --from -j --jobs
    composer exec = 0
    lerna exec = 0 | --scope --ignore --concurrency
    dotnet tool run = 0
    dotnet watch = 0 ^dotnet | --project
    nyc = 0 | --reporter -r --require --include --exclude --report-dir
    c8 = 0 | --reporter -r --include --exclude -o --reports-dir
    kcov = 1
    docker run = 1 | -e --env --env-file -v --volume -u --user -w --workdir --name -p --publish --network --net \
        --mount --platform -l --label --add-host --cpus -m --memory --gpus --shm-size --ulimit --hostname --pull \
        --restart --link --device --cap-add --cap-drop --tmpfs --security-opt --volumes-from --ipc --pid --entrypoint
    docker exec = 1 | -e --env --env-file -u --user -w --workdir
    docker compose run = 1 service | -e --env -v --volume -u --user -w --workdir --name -p --publish --entrypoint -l \
        --label --pull
    docker compose exec = 1 | -e --env -u --user -w --workdir --index
    kubectl exec = dashes | -n --namespace -c --container --context --pod-running-timeout
    kubectl run = dashes | -n --namespace --image --restart --env
    kubectl rsh = 1 | -n --namespace -c --container
    limactl shell = 1 | --workdir
    wsl = 0 | -d --distribution -u --user --cd
    toolbox run = 0 | -c --container
    distrobox enter = dashes | -n --name
    heroku run = 0 | -a --app -s --size -e --env
    fly ssh console = none | -a --app -C:text --command:text
    vagrant ssh = none | -c:text --command:text
    ssh = 1 text | -p -i -l -o -F -J -L -R -D -b -c -E -m -S -W -w
    su = none | -c:text --command:text -s --shell
    runuser = 0 | -u --user -c:text --command:text
    eval = text
    hyperfine = each | -w --warmup -r --runs -m --min-runs -p --prepare --export-json --export-markdown
    concurrently = each | -n --names -c --prefix-colors -p --prefix
    firebase emulators:exec = each | --only --project -P --import
    git bisect run = 0
    foreman run = 0 | -f -e --env
    honcho run = 0 | -f -e --env
    winpty = 0
"""
