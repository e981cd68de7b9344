"""Random models: text that parses and mostly makes no sense, and text that always does."""

import random

FUNCTIONS = (
    *("exp", "log", "sqrt", "abs", "square", "entr", "sigmoid", "inv_pos", "tanh", "power"),
    *("sum", "prod", "max", "min", "mean", "norm", "logsumexp", "softmax", "cumsum"),
    *("maximum", "minimum", "kl_div", "eye", "zeros", "ones", "reshape", "broadcast_to"),
    *("hstack", "vstack", "concatenate", "transpose", "diag", "outer", "dot", "kron"),
    *("trace", "inv", "det", "logdet", "solve", "quad_form", "lyap", "dlyap"),
)
REDUCTIONS = ("sum", "prod", "max", "min", "mean", "norm", "logsumexp")
NAMES = ("x", "y", "v", "A", "b", "n", "w", "pi")
HEADER = """param n = {n}
param A[n,n] = {scale} * ones(n, n) + eye(n)
param b[n] > 0 = 1.5
set S = 1..n
var x[n] in [0.1, 3]
var y[n,2] >= 0
var v[0..n]
let w = 2 * x
"""


class WildModels:
    """Right in syntax and, mostly, in names; anything in shapes, ranges and sizes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.indices = []  # in scope

    def model(self):
        lines = [HEADER.format(n=self.random.choice((0, 1, 2, 3, 3, 5)), scale=self.number())]
        for number in range(self.random.randrange(3)):
            lines.append(self.declaration(f"p{number}"))
        lines.append(f"minimize {self.expression(self.random.randrange(1, 5))}")
        lines.append("subject to")
        for number in range(self.random.randrange(3)):
            lines.append(f"    {self.constraint(number)}")
        if self.random.random() < 0.3:
            lines.append(f"hidden {self.expression(2)}")
        if self.random.random() < 0.3:
            lines.append(f"start {self.random.choice(NAMES)} = {self.expression(1)}")
        return "\n".join(lines)

    def number(self):
        pick = self.random.choice
        return pick(("0", "1", "1", "2", "2", "3", "0.5", "1e3", "1e-3", "7", "1e300", "4000"))

    def name(self):
        if self.random.random() < 0.02:
            return self.random.choice(("zz", "S", "log", "inf", "i"))
        return self.random.choice((*NAMES, *self.indices, *self.indices))

    def declaration(self, name):
        kind = self.random.randrange(4)
        if kind == 0:
            return f"param {name}{self.shape()} = {self.expression(1)}"
        if kind == 1:
            domain = self.random.choice(
                ("", ">= 0", "> 0", "in simplex", "in psd(0.1, 3)", "symmetric", "in [0, 1]")
            )
            return f"var {name}{self.shape()} {domain}"
        if kind == 2:
            return f"set {name} = {self.index_set()}"
        return self.scoped(lambda opened: f"let {name}[{opened}] = {self.expression(2)}", False)

    def shape(self):
        if self.random.random() < 0.3:
            return ""
        entries = [self.index_set() for _ in range(self.random.randrange(1, 4))]
        return f"[{', '.join(entries)}]"

    def index_set(self):
        if self.random.random() < 0.1:
            return self.random.choice(("1..10^12", "1..3000", "n..1", "w", self.name()))
        ends = ("n", "n", "n-1", "n+1", "3", *self.indices)
        low = self.random.choice(("1", "1", "1", "0", "2", *self.indices))
        return self.random.choice(
            (f"{low}..{self.random.choice(ends)}", f"1..{self.random.choice(ends)}", "S", "[1, 2]")
        )

    def scoped(self, write, filters=True):
        """What `write` makes of generators, with their indices in scope meanwhile."""
        before = list(self.indices)
        parts = []
        for _ in range(self.random.choice((1, 1, 2))):
            index = f"i{len(self.indices)}"
            parts.append(f"{index} in {self.index_set()}")
            self.indices.append(index)
        opened = ", ".join(parts)
        if filters and self.random.random() < 0.3:
            compare = self.random.choice(("!=", "<", "<=", ">", "=="))
            ends = [self.random.choice((*self.indices, "n", "2")) for _ in range(2)]
            opened += f" if {ends[0]} {compare} {ends[1]}"
        text = write(opened)
        self.indices = before
        return text

    def constraint(self, number):
        sense = self.random.choice(("<=", ">=", "=="))

        def sides():
            count = 2 if sense == "==" else self.random.choice((2, 2, 3))
            return f" {sense} ".join(f"({self.expression(2)})" for _ in range(count))

        if self.random.random() < 0.5:
            return f"c{number}: {sides()}"
        return self.scoped(lambda opened: f"c{number}[{opened}]: {sides()}")

    def entry(self):
        shifted = [f"{index}{end}" for index in self.indices for end in ("", "", "+1", "-1")]
        return self.random.choice(("1", "2", ":", "1..2", "n", "[1, 2]", *shifted))

    def expression(self, depth):
        choose = self.random.choice
        if depth <= 0:
            return choose((self.name(), self.number(), self.subscript(), self.subscript()))
        kind = self.random.randrange(11)
        inner = depth - 1
        if kind <= 2:
            operator = choose(("+", "-", "*", "*", "/", "@", "^"))
            return f"({self.expression(inner)} {operator} {self.expression(inner)})"
        if kind <= 4:
            name = choose(REDUCTIONS)
            return self.scoped(lambda opened: f"{name}({self.expression(inner)} for {opened})")
        if kind <= 6:
            arguments = [self.expression(inner) for _ in range(choose((1, 1, 1, 2, 3)))]
            if self.random.random() < 0.2:
                arguments.append(f"axis={choose(('1', '2', '[1, 2]', '0', '9', 'n'))}")
            return f"{choose(FUNCTIONS)}({', '.join(arguments)})"
        if kind == 7:
            return self.subscript()
        if kind == 8:
            return f"[{', '.join(self.expression(inner) for _ in range(choose((1, 2, 3))))}]"
        if kind == 9:
            return f"(-{self.expression(inner)})"
        return f"({self.expression(inner)}).T"

    def subscript(self):
        name = self.random.choice(("x", "b", "v", "w", "A", "y"))
        entries = [self.entry() for _ in range(2 if name in ("A", "y") else 1)]
        return f"{name}[{', '.join(entries)}]"


class TameModels:
    """Models that always load and are finite inside their bounds, n = 3."""

    HEADER = """param n = 3
param A[n,n] = [[0.5, -1, 2], [1.5, 0.25, -0.5], [1, 1, -2]]
param b[n] > 0 = [0.5, 1, 2]
param r >= 0 = 0.75
set S = [1, 3]
var x[n] in [0.5, 2]
var v[0..n] in [-1, 1]
var s >= 0.5
var Y[n,n] in [-2, 2]
"""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.indices = {}  # in scope, with their smallest value

    def model(self):
        choose = self.random.choice
        lines = [self.HEADER + f"let w = {self.vector(1)}", self.indexed_let()]
        lines.append(f"{choose(('minimize', 'maximize'))} {self.scalar(3)}")
        lines.append("subject to")
        lines.append(f"    {self.scalar(1)} <= s + sum(x) + sum(v) + sum(Y)")
        for number in range(self.random.randrange(3)):
            lines.append(f"    {self.constraint(f'row{number}')}")
        lines.append(choose(("", "hidden x, v", f"hidden log(x), x[1] + {self.scalar(1)}")))
        lines.append(choose(("", "start x = [1, 1.5, 2]", "start s = 1, v = 0")))
        return "\n".join(lines)

    def indexed_let(self):
        self.indices["i9"] = 1
        text = f"let z[i9 in 1..n] = {self.scalar(1)}"
        self.indices.clear()
        return text

    def constraint(self, name):
        choose = self.random.choice
        form = self.random.randrange(5)
        if form == 0:
            return f"{name}: {self.vector(2)} {choose(('<=', '>=', '=='))} {self.vector(1)} + s"
        if form == 1:
            return f"{name}: -3 <= {self.vector(1)} + s <= {choose(('3', 'b', 'r'))}"
        sense = choose(("<=", ">=", "=="))
        opened = choose(("i1 in 1..n", "i1 in 2..n", "i1 in S", "i1 in 1..n if i1 != 2"))
        self.indices["i1"] = 2 if "2..n" in opened else 1
        if form == 2:
            opened = choose(("i1 in 1..n, i2 in i1..n", "i1 in 1..n, i2 in 1..2"))
            self.indices.update(i1=1, i2=1)
        text = f"{name}[{opened}]: {self.scalar(2)} + s {sense} {self.scalar(1)}"
        self.indices.clear()
        return text

    def place(self):
        options = ["1", "2", "n", "n-1"]
        for index, low in self.indices.items():
            options += [index, index, f"n+1-{index}"] + ([f"{index}-1"] if low > 1 else [])
        return self.random.choice(options)

    def vector(self, depth):
        choose = self.random.choice
        leaves = ("x", "b", "A @ x", "Y[:,1]", f"A[{self.place()},:]", "v[1..n]", "x[[3,1,2]]")
        if depth == 0:
            return choose(leaves)
        inner = depth - 1
        return choose(
            (
                choose(leaves),
                f"({self.vector(inner)} {choose('+-*')} {self.vector(inner)})",
                f"{choose(('exp', 'sin', 'tanh', 'square', 'abs'))}({choose(leaves)})",
                f"[{self.scalar(inner)}, {self.scalar(inner)}, 1]",
                f"(Y @ {self.vector(inner)})",
                f"(-{self.vector(inner)})",
                f"sum(Y * {self.scalar(inner)}, axis={choose('12')})",
            )
        )

    def leaf(self):
        place = self.place
        options = (
            f"x[{place()}]",
            f"b[{place()}]",
            f"v[{place()}]",
            f"A[{place()},{place()}]",
            f"Y[{place()},{place()}]",
            "s",
            "r",
            self.random.choice(("2", "0.5", "pi", "n", *self.indices)),
        )
        return self.random.choice(options)

    def scalar(self, depth):
        if depth <= 0:
            return self.leaf()
        choose = self.random.choice
        kind = self.random.randrange(9)
        inner = depth - 1
        if kind <= 1:
            return f"({self.scalar(inner)} {choose('+-*')} {self.scalar(inner)})"
        if kind == 2:
            return f"{self.scalar(inner)} / (1 + {self.scalar(inner)}^2)"
        if kind == 3:
            name = choose(("sin", "tanh", "abs", "exp", "log1p", "sqrt"))
            if name in ("log1p", "sqrt"):
                return f"{name}({self.scalar(inner)}^2)"
            return (
                f"exp(sin({self.scalar(inner)}))"
                if name == "exp"
                else f"{name}({self.scalar(inner)})"
            )
        if kind == 4:
            return f"{choose(('max', 'min'))}({self.scalar(inner)}, {self.scalar(inner)})"
        if kind == 5:
            return f"{choose(('sum', 'mean', 'norm', 'max'))}({self.vector(inner)})"
        return self.reduction(inner)

    def reduction(self, depth):
        choose = self.random.choice
        name = choose(("sum", "sum", "prod", "max", "min", "mean", "norm", "logsumexp"))
        first, second = f"i{len(self.indices) + 1}", f"i{len(self.indices) + 2}"
        before = dict(self.indices)
        outer = choose([*self.indices, "1"])
        ranges = [f"{first} in 1..n", f"{first} in S", f"{first} in 2..n"]
        if name != "logsumexp":
            ranges += [f"{first} in 1..{outer}", f"{first} in {outer}..n"]
        opened = choose(ranges)
        self.indices[first] = 2 if opened.endswith("in 2..n") else 1
        if name not in ("norm", "logsumexp") and self.random.random() < 0.4:
            opened += f", {second} in {choose(('1..2', f'1..{first}', f'{first}..n'))}"
            self.indices[second] = 1
        if name in ("sum", "prod") and self.random.random() < 0.4:
            filters = (f"{first} != {outer}", f"not ({first} < 2)", f"{first} > 1 and {first} < 3")
            opened += f" if {choose(filters)}"
        element = self.scalar(depth)
        if name == "prod":
            element = choose((f"sin({element})", f"x[{self.place()}]^sin({element})"))
        self.indices = before
        return f"{name}({element} for {opened})"
