"""Impulses that keep bodies from moving into each other, and shifts that part those which overlap.

Fourth part of a step (`physics`) and core of every sub-step (`impacts`): works on the contacts that
`contacts` found, island by island. An island is what hangs together by contacts; one contact alone
is solved in closed form, several by going round until nothing changes.
"""

from stepladder.compiled import bare, inlined
from stepladder.games.hockey.rink import BOUNCE_THRESHOLD, INVERSE_INERTIA, INVERSE_MASS, PUCK
from stepladder.games.hockey.world import Body, Contact, HockeyWorld, turn

SLOP = 0.005
"""Overlap that is left alone: a contact that were parted fully would flicker."""

MAX_SHIFT = 0.2
MAX_VELOCITY_ROUNDS = 180
SETTLED = 1e-7
"""Change of all impulses in a round, in Ns (m/s of the puck), below which going round ends."""


@inlined
def cross(x: float, y: float, other_x: float, other_y: float) -> float:
    """Return the cross product of two vectors."""
    return x * other_y - y * other_x


@inlined
def _levers(contact: Contact, x: float, y: float) -> tuple[float, float]:
    """Return how much an impulse in a direction turns either body: the arms' cross products."""
    face = cross(contact.face_arm_x, contact.face_arm_y, x, y)
    return face, cross(contact.point_arm_x, contact.point_arm_y, x, y)


@inlined
def _surface(contact: Contact, face: Body) -> tuple[float, float, float, float]:
    """Return the normal of a contact's face in the rink, and a point of that face."""
    cos, sin = face.facing_x, face.facing_y
    normal_x = cos * contact.local_normal_x - sin * contact.local_normal_y
    normal_y = sin * contact.local_normal_x + cos * contact.local_normal_y
    plane_x = face.centre_x + cos * contact.plane_x - sin * contact.plane_y
    plane_y = face.centre_y + sin * contact.plane_x + cos * contact.plane_y
    return normal_x, normal_y, plane_x, plane_y


@bare
def prepare(world: HockeyWorld, contact: Contact) -> None:
    """Work out a contact's normal, arms, masses and the speed it is to be left with."""
    face, point = world.bodies[contact.face], world.bodies[contact.point]
    normal_x, normal_y, plane_x, plane_y = _surface(contact, face)
    cos, sin = point.facing_x, point.facing_y
    x = point.centre_x + cos * contact.point_x - sin * contact.point_y
    y = point.centre_y + sin * contact.point_x + cos * contact.point_y
    # Half-way between both surfaces.
    height = (x - plane_x) * normal_x + (y - plane_y) * normal_y
    shift = 0.5 * (contact.gap - height) - contact.point_gap
    x, y = x + shift * normal_x, y + shift * normal_y
    contact.normal_x, contact.normal_y = normal_x, normal_y
    contact.face_arm_x, contact.face_arm_y = x - face.centre_x, y - face.centre_y
    contact.point_arm_x, contact.point_arm_y = x - point.centre_x, y - point.centre_y
    contact.normal_impulse = contact.tangent_impulse = 0.0
    inverse = INVERSE_MASS[contact.face] + INVERSE_MASS[contact.point]
    face_inverse, point_inverse = INVERSE_INERTIA[contact.face], INVERSE_INERTIA[contact.point]
    face_lever, point_lever = _levers(contact, normal_x, normal_y)
    face_slip, point_slip = _levers(contact, normal_y, -normal_x)
    per_normal = inverse + face_inverse * face_lever**2 + point_inverse * point_lever**2
    per_tangent = inverse + face_inverse * face_slip**2 + point_inverse * point_slip**2
    contact.normal_mass, contact.tangent_mass = 1.0 / per_normal, 1.0 / per_tangent
    contact.coupling = face_inverse * face_lever * face_slip
    contact.coupling += point_inverse * point_lever * point_slip
    speed_x, speed_y = relative_velocity(contact, face, point)
    speed = speed_x * normal_x + speed_y * normal_y
    contact.target = -contact.bounce * speed if speed < -BOUNCE_THRESHOLD else 0.0


@inlined
def relative_velocity(contact: Contact, face: Body, point: Body) -> tuple[float, float]:
    """Return the velocity of the point against the face where they touch."""
    x = point.vx - point.spin * contact.point_arm_y - face.vx + face.spin * contact.face_arm_y
    y = point.vy + point.spin * contact.point_arm_x - face.vy - face.spin * contact.face_arm_x
    return x, y


@inlined
def give(
    contact: Contact, face: Body, point: Body, normal_impulse: float, tangent_impulse: float
) -> None:
    """Apply an impulse to the point's body and its opposite to the face's."""
    x = normal_impulse * contact.normal_x + tangent_impulse * contact.normal_y
    y = normal_impulse * contact.normal_y - tangent_impulse * contact.normal_x
    inverse, inverse_inertia = INVERSE_MASS[contact.face], INVERSE_INERTIA[contact.face]
    face.vx -= inverse * x
    face.vy -= inverse * y
    face.spin -= inverse_inertia * cross(contact.face_arm_x, contact.face_arm_y, x, y)
    inverse, inverse_inertia = INVERSE_MASS[contact.point], INVERSE_INERTIA[contact.point]
    point.vx += inverse * x
    point.vy += inverse * y
    point.spin += inverse_inertia * cross(contact.point_arm_x, contact.point_arm_y, x, y)


@bare
def _solve_alone(world: HockeyWorld, contact: Contact) -> None:
    """Solve one contact in closed form: it sticks, or slides with full friction."""
    face, point = world.bodies[contact.face], world.bodies[contact.point]
    normal_x, normal_y = contact.normal_x, contact.normal_y
    speed_x, speed_y = relative_velocity(contact, face, point)
    wanted = contact.target - speed_x * normal_x - speed_y * normal_y
    if wanted <= 0.0:
        return
    slip = speed_x * normal_y - speed_y * normal_x
    coupling = contact.coupling
    per_normal, per_tangent = 1.0 / contact.normal_mass, 1.0 / contact.tangent_mass
    determinant = per_normal * per_tangent - coupling * coupling
    normal = (wanted * per_tangent + slip * coupling) / determinant
    tangent = -(slip * per_normal + wanted * coupling) / determinant
    if abs(tangent) > contact.friction * normal:
        friction = contact.friction if tangent > 0.0 else -contact.friction
        normal = wanted / (per_normal + friction * coupling)
        tangent = friction * normal
    give(contact, face, point, normal, tangent)


@bare
def _solve_round(world: HockeyWorld, contact: Contact) -> float:
    """Bring one contact of several nearer to its solution; return how much had to change."""
    face, point = world.bodies[contact.face], world.bodies[contact.point]
    speed_x, speed_y = relative_velocity(contact, face, point)
    slip = speed_x * contact.normal_y - speed_y * contact.normal_x
    limit = contact.friction * contact.normal_impulse
    tangent = min(max(contact.tangent_impulse - contact.tangent_mass * slip, -limit), limit)
    tangent_change = tangent - contact.tangent_impulse
    contact.tangent_impulse = tangent
    give(contact, face, point, 0.0, tangent_change)
    speed_x, speed_y = relative_velocity(contact, face, point)
    speed = speed_x * contact.normal_x + speed_y * contact.normal_y
    normal = max(contact.normal_impulse + contact.normal_mass * (contact.target - speed), 0.0)
    normal_change = normal - contact.normal_impulse
    contact.normal_impulse = normal
    give(contact, face, point, normal_change, 0.0)
    return abs(normal_change) + abs(tangent_change)


@inlined
def _members(world: HockeyWorld, island: int) -> tuple[int, int]:
    """Return how many contacts an island has, and the last of them."""
    members, last = 0, 0
    for index in range(world.num_contacts):
        if world.contacts[index].island == island:
            members += 1
            last = index
    return members, last


@bare
def solve_velocities(world: HockeyWorld, island: int) -> None:
    """Change velocities so that an island's contacts are left as they must be."""
    for index in range(world.num_contacts):
        if world.contacts[index].island == island:
            prepare(world, world.contacts[index])
    members, last = _members(world, island)
    if members == 1:
        _solve_alone(world, world.contacts[last])
        return
    for _ in range(MAX_VELOCITY_ROUNDS if members else 0):
        change = 0.0
        for index in range(world.num_contacts):
            if world.contacts[index].island == island:
                change += _solve_round(world, world.contacts[index])
        if change < SETTLED:
            return


@bare
def _part(world: HockeyWorld, contact: Contact, rate: float) -> float:
    """Part two bodies a little where they overlap; return how far apart they were."""
    face, point = world.bodies[contact.face], world.bodies[contact.point]
    normal_x, normal_y, plane_x, plane_y = _surface(contact, face)
    cos, sin = point.facing_x, point.facing_y
    point_arm_x = cos * contact.point_x - sin * contact.point_y
    point_arm_y = sin * contact.point_x + cos * contact.point_y
    x, y = point.centre_x + point_arm_x, point.centre_y + point_arm_y
    apart = (x - plane_x) * normal_x + (y - plane_y) * normal_y - contact.gap
    shift = min(rate * (-SLOP - apart), MAX_SHIFT)
    if shift <= 0.0:
        return apart
    face_inverse, point_inverse = INVERSE_MASS[contact.face], INVERSE_MASS[contact.point]
    face_lever = cross(x - face.centre_x, y - face.centre_y, normal_x, normal_y)
    point_lever = cross(point_arm_x, point_arm_y, normal_x, normal_y)
    face_turn = INVERSE_INERTIA[contact.face] * face_lever
    point_turn = INVERSE_INERTIA[contact.point] * point_lever
    impulse = shift / (
        face_inverse + point_inverse + face_turn * face_lever + point_turn * point_lever
    )
    face.centre_x -= face_inverse * impulse * normal_x
    face.centre_y -= face_inverse * impulse * normal_y
    point.centre_x += point_inverse * impulse * normal_x
    point.centre_y += point_inverse * impulse * normal_y
    if face_turn != 0.0:
        turn(face, -face_turn * impulse)
    if point_turn != 0.0:
        turn(point, point_turn * impulse)
    return apart


@bare
def _part_puck(
    world: HockeyWorld, contact: Contact, rate: float, enough: float, max_rounds: int
) -> None:
    """Part the puck from the one thing it overlaps.

    The same rounds as `_part` makes, for the case that a held puck brings about in every step.
    Only the way from one centre of mass to the other and the normal are followed.
    """
    face, puck = world.bodies[contact.face], world.bodies[contact.point]
    x, y = puck.centre_x - face.centre_x, puck.centre_y - face.centre_y
    cos, sin = face.facing_x, face.facing_y
    normal_x = cos * contact.local_normal_x - sin * contact.local_normal_y
    normal_y = sin * contact.local_normal_x + cos * contact.local_normal_y
    distance = contact.plane_x * contact.local_normal_x + contact.plane_y * contact.local_normal_y
    distance += contact.gap
    face_inverse, puck_inverse = INVERSE_MASS[contact.face], INVERSE_MASS[contact.point]
    inverse, face_inertia = face_inverse + puck_inverse, INVERSE_INERTIA[contact.face]
    total_x, total_y, total_turn = 0.0, 0.0, 0.0
    for _ in range(max_rounds):
        apart = x * normal_x + y * normal_y - distance
        shift = min(rate * (-SLOP - apart), MAX_SHIFT)
        if shift > 0.0:
            lever = cross(x, y, normal_x, normal_y)
            impulse = shift / (inverse + face_inertia * lever * lever)
            x, y = x + inverse * impulse * normal_x, y + inverse * impulse * normal_y
            total_x, total_y = total_x + impulse * normal_x, total_y + impulse * normal_y
            angle = -face_inertia * lever * impulse
            total_turn += angle
            # A few thousandths of a radian at most: two terms of each series suffice.
            sin, cos = angle - angle**3 / 6.0, 1.0 - 0.5 * angle**2
            normal_x, normal_y = cos * normal_x - sin * normal_y, sin * normal_x + cos * normal_y
        if apart >= -enough:
            break
    face.centre_x -= face_inverse * total_x
    face.centre_y -= face_inverse * total_y
    puck.centre_x += puck_inverse * total_x
    puck.centre_y += puck_inverse * total_y
    if total_turn != 0.0:
        turn(face, total_turn)


@bare
def solve_positions(
    world: HockeyWorld, island: int, rate: float, enough: float, max_rounds: int
) -> None:
    """Part an island's overlapping bodies until none overlaps by more than `enough`."""
    members, last = _members(world, island)
    if members == 1 and world.contacts[last].point == PUCK:
        _part_puck(world, world.contacts[last], rate, enough, max_rounds)
        return
    for _ in range(max_rounds if members else 0):
        nearest = 0.0
        for index in range(world.num_contacts):
            if world.contacts[index].island == island:
                nearest = min(nearest, _part(world, world.contacts[index], rate))
        if nearest >= -enough:
            return
