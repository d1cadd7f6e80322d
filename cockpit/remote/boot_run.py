# mypy: ignore-errors
# ruff: noqa: F821 - it runs in boot.py's own globals: the program's modules are imported from memory.


class Shipped:
    def __init__(self, codes, folder):
        self.cockpit_codes, self.cockpit_folder = codes, folder

    def find_spec(self, module, path=None, target=None):
        if module in self.cockpit_codes:
            from _frozen_importlib import ModuleSpec

            return ModuleSpec(module, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.cockpit_codes[module.__name__]), module.__dict__)


def run():
    """The program's exit code; 1, 97, 126 and 127 mean other things to the shell that started us."""
    stand_in = os.environ.get("COCKPIT_PYNVML")
    if stand_in:
        codes.pop("pynvml", None)
        sys.path.insert(0, stand_in)
    sys.meta_path.insert(0, Shipped(codes, place))
    sys.argv = [name] + sys.argv[4:]
    try:
        exec(marshal.loads(codes[name]), sys.modules["__main__"].__dict__)
        return 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code
        if not isinstance(code, int):
            os.write(2, str(code).encode("utf-8", "replace") + b"\n")
    except BaseException:  # noqa: BLE001 - the edge of the program: say why, and end with a code of its own
        sys.excepthook(*sys.exc_info())
        code = 70
    return 70 if code in (1, 97, 126, 127) or not isinstance(code, int) else code


sys.exit(run())
