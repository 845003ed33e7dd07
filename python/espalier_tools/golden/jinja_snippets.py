"""Short templates, one for each rule of the language: what statements, operators, filters, tests and methods do,
and what they refuse."""

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello, <World> & 'all' — naïve café 🙂"},
    {"role": "assistant", "content": "Hi\n  there\n", "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": [1, 2.5, None, True]}}}]},
]

VARIABLES = {
    "s": "Hello World", "t": "  padded text\t\n", "u": "ǅungla ß ﬁn ΑΣ İstanbul", "e": "", "multi": "a\nb\r\n\nc", "csv": "a,b,,c",
    "n": 7, "z": 0, "neg": -13, "f": 2.5, "big": 1e20, "tiny": 1.5e-7, "yes": True, "no": False, "nothing": None,
    "xs": [3, 1, 2], "ys": ["b", "A", "c", "B"], "empty": [], "mixed": [1, "a", None, 2.5, True, [1], {"k": 1}],
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow", "get": 5}, "nested": {"x": {"y": [10, {"z": "deep"}]}},
    "users": [{"name": "bob", "age": 30, "city": {"n": "Ulm"}}, {"name": "Al", "age": 25, "city": {"n": "Bonn"}}, {"name": "cy", "age": 30}],
    "pairs": [["k1", 1], ["k2", 2]], "html": "<b>\"x\" & 'y'</b>", "numbers": [1, 2, 3, 4, 5, 6, 7],
}

EXPRESSIONS = r"""
1 + 2 * 3 ** 2
2 ** 3 ** 2
-2 ** 2
(1 + 2) * 3
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
7.5 // 2
-7.5 % 2
1 / 3
10 / 2
2 ** -1
2 ** 0.5
1 / 0
1 // 0
1 % 0
0 ** -1
1e400
1.0
1e16
1e15
123456789012345678
0.1 + 0.2
1_000
0x1F
0o17
0b101
1e5
1.5e-10
100000000000000000000.0
007
1.
.5
- -3
+5
-yes
not 0
not not 1
1 ~ 2 ~ 'a'
'a' 'b'
'a' ~ none ~ true ~ 1.0
none
true
'it''s'
'tab\tnew\\n\x41\u00e9\U0001F600\101\q'
'\ud800'
'\é'
"dq 'single'"
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
1 == 1.0
true == 1
'1' == 1
none == none
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1} == {'a': 1.0}
1 != 2
'a' < 'b'
'a' < 1
none < 1
[1, 2] < [1, 3]
[1] < [1, 0]
1 in [1, 2]
'a' in 'cat'
1 in 'cat'
'b' in d
'x' not in d
1 in {}
[] in xs
[] in d
1 and 2
0 and 2
0 or 'x'
'' or []
1 if yes else 2
1 if no else 2
1 if no
(1 if no) is defined
'a' if yes else 'b' if no else 'c'
[1, 2,]
(1, 2)
(1,)
()
1, 2
{'a': 1, 'b': [1, {'c': none}]}
{1: 'a', 1.0: 'b', true: 'c'}
{[1]: 2}
{'a': 1}.a
{'a': 1}['a']
d.items
d['items']
d.get
d.get('b')
d.get('zz')
d.get('zz', 9)
d.keys() | list
d.values() | list
d.items() | list
d.keys()
d.items()
d.keys() | length
d.items()[0]
d.copy()
d.zz
d['zz']
d.zz.y
d.pop('a')
d.update({})
d.clear
d.setdefault
xs.append(1)
xs.append
xs.index(1)
xs.index(99)
xs.count(1)
xs.copy()
(1, 2).index(2)
(1, 2).count(2)
xs[0]
xs[-1]
xs[9]
xs[-9]
xs['a']
xs[1.0]
xs.0
xs[yes]
xs.zz
xs[1:]
xs[:-1]
xs[::-1]
xs[::2]
xs[-2:]
xs[5:]
xs[2:1]
xs[::0]
xs['a':]
xs[none:2]
s[0]
s[-1]
s[99]
s[1:4]
s[::-1]
u[0:4]
u[3]
s.zz
n.zz
n[0]
none.x
none['x']
none[0]
d[1:]
missing[1:]
missing
missing.x
missing['x']
missing()
missing + 1
missing ~ 'x'
missing == missing2
missing == none
missing is defined
missing | default('dflt')
missing | d
missing in [1]
1 in missing
'a' in missing
missing | length
missing | list
missing | upper
missing | trim
missing | join(',')
missing | first
missing | last
missing | int
missing | float
missing | abs
missing | round
missing | tojson
missing | string
missing | replace('a', 'b')
missing | map('upper') | list
missing | select | list
missing | sort
missing | min
missing | sum
missing | dictsort
missing | items | list
missing | reverse | list
missing | batch(2) | list
missing | indent
missing | capitalize
missing | title
missing | wordcount
missing | center
missing | truncate
missing | unique | list
missing | groupby('a')
missing | e
missing | attr('x')
missing | format
missing | urlencode
missing | filesizeformat
missing | striptags
missing < 1
-missing
[missing]
(missing,) ~ ''
{'a': missing}
{missing: 1}
not missing
missing and 1
missing is none
missing is sequence
missing is iterable
missing is callable
missing is mapping
missing is string
missing is number
missing is lower
nested.x.y[1].z
nested['x']['y'][0]
nested.x.y.1.z
nested.x.q.z
s + 'x'
s + 1
1 + s
xs + [4]
xs + (4,)
(1,) + (2,)
xs * 2
2 * xs
(0,) * 3
s * 2
s * -1
s - 1
xs - xs
d + d
none + none
s % 1
'%s and %s' % (1, 'b')
'%s' % 'x'
'%s' % none
'%s' % xs
'%s %s' % xs
'%d' % 3.7
'%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5)
'%.2f|%8.3f|%-8.1f|%08.2f|%e|%E|%g|%G' % (1.005, 2.5, 2.25, -3.14159, 12345.678, 0.00012, 1e10, 1e-10)
'%x|%X|%o|%#x|%#o' % (255, 255, 8, 255, 8)
'%c%c' % ('a', 98)
'%r' % 'q\'s'
'%%'
'%%' % ()
'%s'
'%5s|%-5s|%.2s' % ('ab', 'ab', 'abcdef')
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%(zz)s' % {'a': 1}
'%d' % 'a'
'%s %s' % (1,)
'%s' % (1, 2)
'%q' % 1
'%' % 1
'%*d' % (5, 42)
'%.3d' % 7
'%i' % true
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format(1, 2)
'{a} {b}'.format(a=1, b=2)
'{a.name} {b[0]} {c[k]}'.format(a={'name': 'no'}, b=[1], c={'k': 2})
'{c[k]} {b[0]}'.format(b=[1], c={'k': 2})
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:5}|{:05}|{:+}|{:,}|{:_}'.format(1, 2, 3, 1234567, 1234567)
'{:.2f}|{:8.3f}|{:e}|{:g}|{:%}|{:.1%}'.format(1.005, 2.5, 12345.678, 1e10, 0.25, 0.256)
'{:x}|{:X}|{:o}|{:b}|{:#x}|{:#b}'.format(255, 255, 8, 5, 255, 5)
'{!r} {!s}'.format('a', 'b')
'{:{}}|'.format('a', 5)
'{{}} {{{}}}'.format(1)
'{'.format(1)
'}'.format(1)
'{}'.format()
'{} {0}'.format(1)
'{zz}'.format(a=1)
'{:d}'.format('a')
'{:.1f}'.format('a')
'{:s}'.format(1)
'{:<5}|{:5}'.format(true, none)
'{:10.3}|{:.3}'.format(3.14159, 'abcdef')
'{:.3}|{:.10}|{:.1}'.format(1234.5, 0.1, 25.0)
'{:c}'.format(65)
'{:q}'.format(1)
'{:.2}'.format(1)
'{:=+6}|{:<06}|{:06.1f}'.format(5, 5, -2.5)
s.upper()
s.lower()
u.upper()
u.lower()
u.title()
u.capitalize()
u.swapcase()
u.casefold()
s.title()
"they're bill's".title()
s.capitalize()
s.swapcase()
t.strip()
t.lstrip()
t.rstrip()
'xxabcxx'.strip('x')
'abcxyz'.strip('abz')
'abc'.strip('')
'abc'.strip(1)
'é1é'.strip('é')
s.split()
s.split('o')
s.split('o', 1)
s.split(maxsplit=0)
s.split(sep='l')
csv.split(',')
t.split()
t.split(none, 1)
'a b  c d'.split(None, 2)
'a b  c d '.rsplit(None, 2)
'a,b,c'.rsplit(',', 1)
'a,b,c'.rsplit(',')
'abc'.split('')
''.split()
''.split(',')
multi.splitlines()
multi.splitlines(true)
s.startswith('Hell')
s.startswith(('x', 'H'))
s.startswith('W', 6)
s.startswith(1)
s.startswith(['H'])
s.endswith('ld')
s.endswith('Hello', 0, 5)
s.replace('o', '0')
s.replace('o', '0', 1)
s.replace('', '-')
s.replace('l', '')
''.replace('', 'x')
'aaa'.replace('a', 'b', -1)
'aaa'.replace('a', 'b', count=1)
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
s.rfind('o', 0, 5)
s.index('W')
s.index('zz')
s.count('l')
s.count('')
s.count('l', 4)
u.find('ß')
s.join(['a', 'b'])
', '.join(ys)
', '.join([1])
', '.join('abc')
''.join([])
'abc'.isalpha()
'ab1'.isalnum()
'12'.isdigit()
'²'.isdigit()
'½'.isnumeric()
'12'.isdecimal()
''.isalpha()
'  '.isspace()
'AB'.isupper()
'ab1'.islower()
'1'.islower()
'Ab Cd'.istitle()
'a_1'.isidentifier()
'aé'.isascii()
'a\n'.isprintable()
'5'.zfill(3)
'-5'.zfill(4)
'+5'.zfill(2)
'ab'.center(5)
'ab'.center(6, '*')
'abc'.center(6, '*')
'ab'.ljust(5, '.')
'ab'.rjust(5)
'ab'.rjust(5, 'xy')
'a\tb'.expandtabs()
'a\tb'.expandtabs(4)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.partition('')
'prefix-x'.removeprefix('prefix-')
'x.py'.removesuffix('.py')
'x'.removesuffix('')
'{a}'.format_map({'a': 1})
s.nope()
s.upper(1)
s.upper
xs | length
s | length
d | count
n | length
range(3) | length
range(5) | list
range(1, 10, 3) | list
range(5, 0, -2) | list
range(0) | list
range(3)
range(1, 2, 3)
range(3)[1]
range(3)[-1]
range(3)[5]
range(10)[2:5] | list
range(10)[::-3] | list
range(100001)
range(1, 2, 0)
range(1.5)
range()
2 in range(3)
2.0 in range(3)
'a' in range(3)
range(3) == range(0, 3, 1)
range(3) is sequence
range(3).step
dict(a=1, b=2)
dict([('a', 1)], b=2)
dict(d)
dict()
dict('ab')
namespace(a=1).a
namespace({'q': 3}).q
namespace(a=1)['a']
namespace().zz
namespace(a=1)
namespace(_a=1)
namespace({'_a': 1})
namespace() is iterable
namespace() is mapping
raise_exception('boom')
strftime_now('%Y-%m-%d %H:%M:%S %j %a %A %b %B %p %I %y %% %d %e %-d')
strftime_now('')
strftime_now('%f|%z|%Z|')
strftime_now(1)
cycler('a', 'b').next()
cycler()
joiner('|')()
joiner()
xs | first
xs | last
empty | first
empty | last
s | first
s | last
xs | map('string') | first
xs | map('string') | last
xs | sort
xs | sort(reverse=true)
ys | sort
ys | sort(case_sensitive=true)
ys | sort(true)
mixed | sort
users | sort(attribute='name') | map(attribute='name') | list
users | sort(attribute='age,name') | map(attribute='name') | join(' ')
users | sort(attribute='city.n') | list
users[:2] | sort(attribute='city.n') | map(attribute='city.n') | list
d | dictsort
d | dictsort(true)
d | dictsort(false, 'value')
{'a': 2, 'b': 1} | dictsort(by='value')
{'a': 2, 'b': 1} | dictsort(by='value', reverse=true)
{'a': 2} | dictsort(by='zz')
xs | reverse
xs | reverse | list
s | reverse
n | reverse
d | list
s | list
none | list
5 | list
xs | join
xs | join(', ')
xs | join('-', 'zz')
users | join(', ', attribute='name')
mixed | join('|')
s | join('.')
xs | min
xs | max
ys | min
ys | max
ys | max(case_sensitive=true)
empty | max
users | max(attribute='age')
mixed | max
xs | sum
[1.5, 2] | sum
[[1], [2]] | sum(start=[])
['a'] | sum
users | sum(attribute='age')
users | sum('age', 10)
xs | unique | list
['a', 'A', 'b'] | unique | list
['a', 'A', 'b'] | unique(true) | list
users | unique(attribute='age') | map(attribute='name') | list
[[1], [1]] | unique | list
[1, 1.0, true, '1'] | unique | list
numbers | batch(3) | list
numbers | batch(3, 'x') | list
numbers | batch(0) | list
numbers | slice(3) | list
numbers | slice(3, 'x') | list
numbers | slice(0) | list
numbers | slice(10) | list
users | groupby('age')
users | groupby('age') | map(attribute='grouper') | list
users | groupby('age') | map('first') | list
(users | groupby('age'))[0].list
users | groupby('city.n', default='?') | map(attribute=0) | list
ys | groupby(0) | list
[{'a': 'x'}, {'a': 'X'}] | groupby('a')
[{'a': 'x'}, {'a': 'X'}] | groupby('a', case_sensitive=true)
xs | map('string') | list
xs | map('multiply') | list
users | map(attribute='name') | list
users | map(attribute='zz') | list
users | map(attribute='zz', default='none') | list
users | map(attribute='city.n', default='-') | list
users | map(attribute='name', zz=1) | list
users | map('attr', 'name') | list
ys | map('upper') | join
ys | map('replace', 'b', 'X') | list
ys | map('default', 'x') | list
xs | map | list
xs | map('string')
(xs | map('string')) is iterable
(xs | map('string')) is sequence
(empty | map('string')) | length
numbers | select('odd') | list
numbers | select('even') | list
numbers | select('divisibleby', 3) | list
numbers | select('gt', 3) | list
numbers | select('>', 5) | list
numbers | select('in', [1, 9]) | list
numbers | reject('odd') | list
mixed | select | list
mixed | select('string') | list
mixed | select('number') | list
mixed | reject('none') | list
numbers | select('nope') | list
numbers | select('odd') | first
mixed | select('odd') | list
mixed | select('odd') | first
users | selectattr('city') | map(attribute='name') | list
users | selectattr('age', 'equalto', 30) | map(attribute='name') | list
users | selectattr('age', '==', 25) | list
users | rejectattr('city', 'defined') | list
users | rejectattr('age', 'lt', 28) | map(attribute='name') | list
users | selectattr('city.n', 'eq', 'Ulm') | list
users | selectattr | list
users | selectattr('name', 'in', ['bob']) | list | length
messages | selectattr('role', 'equalto', 'tool') | list | length > 0
(messages | selectattr('role', 'equalto', 'tool')) and 'truthy'
(messages | rejectattr('role', 'eq', 'system') | first).content
n | abs
neg | abs
-2.5 | abs
s | abs
'42' | int
'42.9' | int
' 7 ' | int
'x' | int
'x' | int(5)
'x' | int(default=-1)
'0x1A' | int(base=16)
'1A' | int(0, 16)
'101' | int(base=2)
'1_000' | int
2.9 | int
-2.9 | int
none | int
xs | int
true | int
'inf' | int
'1e3' | int
'3.5' | float
'x' | float
'x' | float(1.5)
none | float
'1e3' | float
' nan ' | float
'-inf' | float
3 | float
'0x10' | float
2.5 | round
3.5 | round
2.675 | round(2)
42.55 | round(1, 'floor')
42.55 | round(1, 'ceil')
42.55 | round(1)
7 | round
7 | round(0, 'floor')
1234 | round(-2)
1250 | round(-2)
1234.5 | round(-2)
2.5 | round(method='zz')
s | round
2.4 | round | int
-0.4 | round
7 | round(2, 'ceil')
1024 | filesizeformat
1 | filesizeformat
999 | filesizeformat
1500000 | filesizeformat
1500000 | filesizeformat(true)
'2048' | filesizeformat(binary=true)
s | upper
s | lower
n | upper
s | title
"they're (a-b) [c<d]" | title
u | title
s | capitalize
'ßa' | capitalize
t | trim
'xxaxx' | trim('x')
xs | trim
s | center(20)
s | center
s | replace('o', '0')
s | replace('o', '0', 1)
xs | replace(1, 9)
s | replace('o', none)
s | string
xs | string
d | string
1.0 | string
s | indent
multi | indent
multi | indent(2)
multi | indent(2, true)
multi | indent(2, blank=true)
multi | indent('> ')
multi | indent(width=1, first=true, blank=true)
'' | indent
'a\n' | indent
'a\n\n' | indent(2, true, true)
n | indent
s | truncate(5)
s | truncate(8)
s | truncate(5, true)
s | truncate(5, leeway=0)
s | truncate(5, true, '..', 0)
s | truncate(1)
'a b c d e f g h' | truncate(9, false, '...', 0)
s | truncate
s | wordcount
u | wordcount
'a-b c_d e' | wordcount
'%s-%s' | format(1, 2)
'%(a)s' | format(a=1)
'%s' | format(1, a=2)
'no' | format
html | e
html | escape
html | e | e
html | forceescape
html | safe | e
html | striptags
'a <!-- c --> b&amp;&lt;' | striptags
(html | e) + '<x>'
'<x>' + (html | e)
(html | e) ~ '<x>'
(html | e) is escaped
html is escaped
(html | safe) | upper
(html | safe).replace('b', '<i>')
('%s' | safe) % '<x>'
('{}' | safe).format('<x>')
(', ' | safe).join(['<', '>'])
('x' | safe) * 2
[html | e]
'a b/c?d=é&f' | urlencode
{'a b': 'c d', 'e': 1} | urlencode
[('a', 'b&c')] | urlencode
n | urlencode
d | items | list
xs | items | list
xs | items
d | attr('keys')
d | attr('b')
s | attr('upper')
s | attr('upper') is callable
s | attr(1)
none | default('x')
none | default('x', true)
'' | default('x')
'' | d('x', boolean=true)
missing.x | default('x')
mixed | tojson
nested | tojson
d | tojson(indent=2)
d | tojson(indent=0)
d | tojson(indent='--')
d | tojson(sort_keys=true)
d | tojson(separators=(',', ':'))
d | tojson(indent=1, separators=(',', ': '))
[] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}, [[]]] | tojson(indent=2)
u | tojson
u | tojson(ensure_ascii=true)
'🙂\x7f\x00\x1f"\\/' | tojson
'🙂\x7f\x00\x1f"\\/' | tojson(true)
(1, 2) | tojson
{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson
{(1, 2): 'a'} | tojson
1e20 | tojson
0.1 | tojson
'inf' | float | tojson
'nan' | float | tojson
html | tojson
(html | e) | tojson
range(3) | tojson
d.items() | tojson
(xs | map('string')) | tojson
namespace() | tojson
s | tojson | tojson
d | tojson(zz=1)
messages | tojson
messages[2].tool_calls[0].function.arguments | tojson
s | nope
s | upper(1)
s | replace('a')
s | default(1, 2, 3)
n is odd
n is even
2.0 is even
s is even
true is odd
n is divisibleby 7
n is divisibleby(0)
n is defined
n is undefined
n is none
nothing is none
nothing is not none
no is false
z is false
yes is true
n is true
yes is boolean
n is boolean
n is integer
yes is integer
f is integer
f is float
n is number
yes is number
s is number
s is string
n is string
(html | e) is string
d is mapping
xs is mapping
xs is sequence
s is sequence
d is sequence
n is sequence
d.items() is sequence
xs is iterable
n is iterable
d.items() is iterable
s.upper is callable
s is callable
range is callable
n is sameas 7
none is sameas none
xs is sameas xs
[1] is sameas [1]
n is eq 7
n is equalto(7)
n is == 7
n is ne 8
n is lt 8
n is le 7
n is gt 8
n is ge 7
n is lessthan 9
n is greaterthan 9
n is in [7]
n is not in [7]
'low' is lower
'LOW' is upper
n is lower
'upper' is filter
'nope' is filter
'odd' is test
'nope' is test
n is nope
n is not defined
n is defined is true
n is divisibleby 7 and yes
n is odd or no
n is odd if yes else 'x'
not n is odd
n is not not odd
-5 | abs
-5.abs
1 + 2 | string ~ 'x'
1 ~ 2 + 3
'a' ~ 'b' * 2
2 * 3 ~ 4
not 1 == 2
1 in [1] == true
[1, 2, 3][1]
'abc'[1]
(1, 2)[0]
{'a': {'b': 1}}.a.b
xs[xs[1]]
xs[-xs[1]]
[xs, ys][0][1]
s.upper().lower()[0:3]
xs[0:2][0]
ys | map('lower') | unique | sort | join(',') | upper
"%s" | format(s) | length
loop
loop.index
caller
varargs
xs[1:2, 3]
xs[1, 2]
d[1, 2]
f(
1 +
[1, 2
{'a': }
{'a' 1}
(1
1 2
a b
'abc
"abc
@
a ! b
a & b
a && b
}
]
x.
x[
x|
x is
1 if
if 1
f(a=1, 2)
f(*xs, 1)
f(**d, a=1)
range(*[1, 4]) | list
dict(**{'a': 1})
dict(a=1, **{'a': 2})
range(a=1)
range(**{1: 2})
dict(a=1, a=2)
range(*5)
range(1,)|list
True and False
None
True is true
xs|sort|first
messages[0]['role']
messages[0].role
messages[-1].content
messages[1].content | upper
messages[1]['content'].split()[0]
messages | map(attribute='role') | list
messages | length
messages[1:] | length
messages[0].get('zz', 'no')
'role' in messages[0]
messages[0] == messages[0]
bos_token ~ eos_token
add_generation_prompt
tools
documents
tools is none
tools is defined
"""

STATEMENTS = r"""
{% if 1 %}a{% endif %}b
§
  {% if 1 %}
  a
  {% endif %}
b
§
x {% if 1 %} a {%- endif %} b
§
x {%- if 1 -%} a {%- endif -%} b
§
x  {%+ if 1 %}
a
  {%+ endif +%}
b
§
{%- if 1 -%}

  a

{%- endif -%}

b
§
  {{ 'v' }}
  {{- 'w' }}  
{{ 'x' -}}
   y
§
{{ 'a' }}
{{ 'b' }}


§
a
§

§
a{# comment #}b
  {# comment #}
c {#- strip -#} d
{#+ keep +#}
e
§
{# unclosed
§
{% raw %}{{ x }}{% if %}{% endraw %}
§
a {%- raw -%}  {{ x }}  {%- endraw -%} b
§
  {% raw %}
  {{ x }}
  {% endraw %}
z
§
{% raw %}{{ x }}
§
{% raw %}{% endraw %}{% raw %}a{%+ endraw +%}
b
§
{{ '{{' }}{{ '%}' }}{{ "}}" }}
§
{{ {'a': {'b': 1}} }}{{ {'a': {}}}}
§
{ { x } } {a} {% if 1 %}{ {% endif %}
§
{% for x in xs %}{{ x }}{% endfor %}
§
{% for x in xs %}
- {{ x }}
{% endfor %}
§
{% for x in xs -%}
  {{ x }}
{%- endfor %}
§
{% for x in xs %}{{ loop.index }}/{{ loop.length }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} {{ loop.last }} {{ loop.depth }} {{ loop.depth0 }}|{% endfor %}
§
{% for x in xs %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }};{% endfor %}
§
{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem.x }}{% endfor %}
§
{% for x in numbers %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}
§
{% for x in xs %}{{ loop.cycle() }}{% endfor %}
§
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}
§
{% for x in xs %}{{ loop }}{{ loop|length }}{{ loop.zz }}{% endfor %}
§
{% for x in empty %}x{% else %}none{% endfor %}
§
{% for x in xs %}{{ x }}{% else %}none{% endfor %}
§
{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}
§
{% for x in xs if x > 10 %}x{% else %}none{% endfor %}
§
{% for x in xs if loop.first %}{{ x }}{% endfor %}
§
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
§
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
§
{% for k in d %}{{ k }}{% endfor %}
§
{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}
§
{% for a, b in pairs %}{{ a }}{{ b }}{% endfor %}
§
{% for (a, b) in pairs %}{{ a }}{{ b }}{% endfor %}
§
{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}
§
{% for a, b in xs %}{{ a }}{% endfor %}
§
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
§
{% for a, b in ['xy'] %}{{ b }}{{ a }}{% endfor %}
§
{% for a, in [[1], [2]] %}{{ a }}{% endfor %}
§
{% for c in 'héy' %}{{ c }}.{% endfor %}
§
{% for x in 5 %}{% endfor %}
§
{% for x in none %}{% endfor %}
§
{% for x in missing %}a{% else %}b{% endfor %}
§
{% for x in 1, 2, 3 %}{{ x }}{% endfor %}
§
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
§
{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
§
{% for x in [1] %}{% break %}{% else %}E{% endfor %}
§
{% for x in [1, 2] %}{% continue %}{% else %}E{% endfor %}
§
{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}E{% endfor %}
§
{% break %}
§
{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
§
{% for x in xs %}{% set y %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endset %}{{ y }}{% endfor %}
§
{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}
§
{% for x in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3}]}]}] recursive %}{{ loop.depth }}{{ x.v }}[{{ loop(x.c) if x.c }}]{% endfor %}
§
{% for x in xs %}{{ loop(xs) }}{% endfor %}
§
{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% else %}E{% endfor %}
§
{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}
§
{% for i in xs %}{% set q = i %}{% endfor %}{{ q }}
§
{% if yes %}{% set q = 1 %}{% endif %}{{ q }}
§
{% if no %}{% set q = 1 %}{% endif %}{{ q }}
§
{% if no %}{% set s = 1 %}{% endif %}{{ s }}
§
{{ s }}{% set s = 2 %}{{ s }}
§
{% for i in [1] %}{{ s }}{% endfor %}{% set s = 2 %}{{ s }}
§
{% for i in [1] %}{{ s }}{% endfor %}{% if yes %}{% set s = 2 %}{% endif %}{{ s }}
§
{% set s = s ~ '!' %}{{ s }}
§
{% for i in [1, 2] %}{{ s }}{% set s = i %}{{ s }}|{% endfor %}{{ s }}
§
{% for i in [1, 2] %}{% if i == 2 %}{{ q }}{% endif %}{% set q = i %}{% endfor %}
§
{% for s in xs %}{{ s }}{% endfor %}{{ s }}
§
{% set ns = namespace(c=0) %}{% for i in xs %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}
§
{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b, x = 2, 3 %}{{ ns.a }}{{ ns.b }}{{ x }}
§
{% set ns.a = 1 %}
§
{% set d.a = 1 %}
§
{% set ns = namespace() %}{% set ns._a = 1 %}
§
{% set ns = namespace(x=1) %}{{ ns }}{{ ns.x }}{{ ns['x'] }}{{ ns.q is defined }}
§
{% set a, b = 1, 2 %}{{ b }}{{ a }}
§
{% set a, b = pairs[0] %}{{ b }}{{ a }}
§
{% set a, b = 1 %}
§
{% set a = 1, 2 %}{{ a }}
§
{% set (a, b) = (1, 2) %}{{ a }}
§
{% set x %}  block {{ s }} {% endset %}[{{ x }}]
§
{% set x | upper | replace('L', '1') %}block {{ s }}{% endset %}{{ x }}
§
{% set ns = namespace() %}{% set ns.x %}in{% endset %}{{ ns.x }}
§
{% set x %}{% set inner = 1 %}{{ inner }}{% endset %}{{ x }}{{ inner }}
§
{% set none = 1 %}
§
{% set 1 = 1 %}
§
{% set x.y.z = 1 %}
§
{% set x[0] = 1 %}
§
{% set x %}
§
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=4) }}|{{ m(a=5) }}|{{ m() }}
§
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
§
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
§
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
§
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
§
{% macro m(*a) %}{% endmacro %}
§
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}
§
{% macro m(b=s) %}{{ b }}{% endmacro %}{{ m() }}
§
{% macro m(a=1, b) %}{% endmacro %}
§
{% macro m(a, a) %}{% endmacro %}
§
{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}{% set q = 2 %}{{ m() }}
§
{% macro m() %}{% set s = 5 %}{{ s }}{% endmacro %}{{ m() }}{{ s }}
§
{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
§
{% macro m() %}  a  {% endmacro %}[{{ m() }}][{{ m()|trim }}]{{ m() is string }}
§
{% macro m(a) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}
§
{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}
§
{% if yes %}{% macro m() %}in{% endmacro %}{% endif %}{{ m() }}
§
{{ m() }}{% macro m() %}x{% endmacro %}
§
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ s }}{% endcall %}
§
{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b, c=3) m() %}{{ a }}{{ b }}{{ c }}{% endcall %}
§
{% macro m() %}x{% endmacro %}{% call m() %}body{% endcall %}
§
{% macro m() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ m() }}
§
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
§
{% macro m(caller) %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}
§
{% macro m(caller=none) %}{{ caller() if caller }}{% endmacro %}{% call m() %}x{% endcall %}{{ m() }}
§
{% macro a() %}<{{ caller() }}>{% endmacro %}{% macro b() %}({% call a() %}{{ caller() }}{% endcall %}){% endmacro %}{% call b() %}x{% endcall %}
§
{% call 5 %}x{% endcall %}
§
{% call s.upper() %}x{% endcall %}
§
{% filter upper %}abc {{ s }}{% endfilter %}
§
{% filter replace('a', 'b') | upper %}abc{% endfilter %}
§
{% filter nope %}abc{% endfilter %}
§
{% filter upper %}{% set fx = 1 %}{{ fx }}{% endfilter %}{{ fx }}
§
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}
§
{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}
§
{% with s = 1, q = s %}{{ q }}{{ s }}{% endwith %}
§
{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}
§
{% print 1, 'a' %}{% print s %}
§
{% generation %}a{{ s }}{% set g = 1 %}{% endgeneration %}{{ g }}
§
{%- generation -%} a {%- endgeneration -%} b
§
{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
§
{% for x in xs %}{% generation %}{{ loop.index }}{{ x }}{% endgeneration %}{% endfor %}
§
{% generation %}
§
{% if no %}a{% elif yes %}b{% else %}c{% endif %}
§
{% if no %}a{% elif no %}b{% elif yes %}c{% endif %}
§
{% if xs %}a{% endif %}{% if empty %}b{% endif %}{% if e %}c{% endif %}{% if z %}d{% endif %}{% if nothing %}e{% endif %}{% if missing %}f{% endif %}{% if d %}g{% endif %}{% if f %}h{% endif %}
§
{% if %}{% endif %}
§
{% if 1 %}
§
{% endif %}
§
{% if 1 %}{% endfor %}
§
{% else %}
§
{% nope %}
§
{% %}
§
{% if 1 %}{% else %}{% else %}{% endif %}
§
{% for x in %}{% endfor %}
§
{% for in xs %}{% endfor %}
§
{% for x of xs %}{% endfor %}
§
{% for x.y in xs %}{% endfor %}
§
{% for loop in xs %}{% endfor %}
§
{% for x in xs %}{% set loop = 1 %}{% endfor %}
§
{% set loop = 1 %}{{ loop }}
§
{% if 1: %}a{% endif %}
§
{% for x in xs: %}{{ x }}{% endfor %}
§
{% if no %}{{ s | nope }}{% endif %}ok
§
{% if no %}{{ s is nope }}{% endif %}ok
§
{% for x in empty %}{{ s | nope }}{% endfor %}
§
{{ (s | nope) if no else 'ok' }}
§
{% if yes %}{{ s | nope }}{% endif %}
§
{% if no %}{% for x in xs %}{{ s | nope }}{% endfor %}{% endif %}
§
{% set g = xs | map('string') %}{{ g | join }}{{ g | join }}
§
{% set g = xs | map('string') %}{% for x in g %}{{ loop.length }}{{ loop.last }}{{ x }}{% endfor %}
§
{% if xs | select('gt', 100) %}truthy{% endif %}
§
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{% set _ = c.reset() %}{{ c.current }}
§
{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}
§
{{ users | map(attribute='name') | map('upper') | join(' ') }}
§
{%- set ns = namespace(found=false) -%}
{%- for m in messages -%}
  {%- if m.role == 'user' and not ns.found -%}
    {%- set ns.found = true -%}
    {{- m.content.split('\n')[0] | trim -}}
  {%- endif -%}
{%- endfor -%}
§
{% for message in messages %}{{ '<|' ~ message.role ~ '|>' }}{{ message.content }}{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}
§
{% set x = {'a': [1, 2, {'b': 3}]} %}{{ x.a[2].b }}{{ x['a'][0] }}
§
{%set x=1%}{{x}}{%if x==1%}y{%endif%}
§
{{'a'}}{{'b'}}
§
{{- 'a' -}}   {{- 'b' -}}
§
{{+ 'a' }}{{ -1 }}{{-1}}
§
{% set msg = messages[1] %}{{ msg.content | tojson }}{{ msg | tojson }}
§
{% include 'x' %}
§
{% extends 'x' %}
§
{% import 'x' as y %}
§
{{ '\n' }}{{ "a\
b" }}
§
{% set a = 'x' %}{% for i in range(2) %}{% set a = a ~ i %}{{ a }}{% endfor %}{{ a }}
§
{% set outer = 1 %}{% macro m() %}{{ outer }}{% set outer = 2 %}{{ outer }}{% endmacro %}{{ m() }}{{ outer }}
§
{% macro outer() %}{% macro inner() %}{{ s }}{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}
§
{% for a in xs %}{% for b in xs if b != a %}{{ a }}{{ b }}{{ loop.index }} {% endfor %}{% endfor %}
§
{% for a in xs %}{% set outer_loop = loop %}{% for b in [1, 2] %}{{ outer_loop.index }}{{ loop.index }} {% endfor %}{% endfor %}
§
{% for key, group in users | groupby('age') %}{{ key }}:{% for u in group %}{{ u.name }}{% endfor %};{% endfor %}
§
{% for row in numbers | batch(3) %}{{ row | join(',') }};{% endfor %}
§
{{ [1, 2] | map('nope') | list }}
§
{{ s.format }}{% set fmt = '{}'.format %}{{ fmt(1) }}
§
a
  b {% if yes %}c{% endif %}
    {% if yes %}
      d
    {%- endif %}

e
§
{% if yes %}a
{% endif %}
{% if yes %}

b{% endif %}
§
	{% if yes %}tab{% endif %}
 	 {%- if yes %} x{% endif %}
§
{{ 'x' }}  {% if yes %}y{% endif %}  {{ 'z' }}  
  {% if yes %}q{% endif %}  
§
line
{{ 'v' }}
{% if yes %}
  {{ 'w' }}
{% endif %}
end
"""

TEMPLATES = ["{{ " + line + " }}" for line in EXPRESSIONS.strip("\n").split("\n")]
TEMPLATES += [part.strip("\n") if part.strip("\n") else part for part in STATEMENTS.strip("\n").split("\n§\n")]
TEMPLATES += ["a\r\nb\rc{% if 1 %}\r\nd{% endif %}\r\n", "a\n", "a\n\n", "\n", "", "{{ s }}\n"]
